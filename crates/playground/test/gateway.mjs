// The gateway's page in a real browser: `node gateway.mjs URL CHROMIUM PIDFILE ASYMQ CONTROL [PICTURES]`, beside a gateway with
// traffic in both directions. scripts/page-test runs it in this way.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import net from 'node:net';
import { chromium } from 'playwright-core';

const [url, executablePath, pidFile, asymq, control, pictures] = process.argv.slice(2);
const gateway = () => readFileSync(pidFile, 'utf8').trim();
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
const noise = [];

async function open({ width = 1280, height = 900, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, ...options });
  const page = await context.newPage();
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && noise.push(message.text()));
  page.on('pageerror', (error) => noise.push(String(error)));
  page.on('request', (request) => {
    const asked = request.url();
    if (!asked.startsWith(url) && !asked.startsWith('data:')) noise.push(`a request to ${asked}`);
  });
  await page.goto(url);
  await page.waitForFunction(() => document.getElementById('up-rate').textContent !== '–', null, { timeout: 20000 });
  return page;
}

const text = (page, selector) => page.locator(selector).textContent();
const megabits = (shown) => { const [, number, unit] = /([\d.]+) ([kM])bit/.exec(shown); return number * (unit === 'k' ? 0.001 : 1); };
// CPU time of the gateway's threads in ns: those of the page, and all.
function busy() {
  const pid = gateway();
  const times = readdirSync(`/proc/${pid}/task`).map((thread) => {
    const of = `/proc/${pid}/task/${thread}`;
    return [readFileSync(`${of}/comm`, 'utf8').trim(), Number(readFileSync(`${of}/schedstat`, 'utf8').split(' ')[0])];
  });
  const sum = (threads) => threads.reduce((all, [, time]) => all + time, 0);
  return [sum(times.filter(([name]) => ['page', 'history'].includes(name))), sum(times)];
}
// Seconds of a measurement: 60 for figures.
const SECONDS = Number(process.env.SECONDS ?? 5);
// CPU use over some seconds in percent of a core: the page's threads, and all threads.
async function share() {
  const [before, begun] = [busy(), process.hrtime.bigint()];
  await wait(SECONDS * 1000);
  const took = Number(process.hrtime.bigint() - begun);
  return busy().map((time, index) => ((time - before[index]) / took) * 100);
}
// Sends a page's requests until stopped, without the other work of a browser.
function viewer() {
  const state = { past: 0, stop: false };
  const every = async (ms, turn) => { while (!state.stop) { await turn(); await wait(ms); } };
  state.done = every(1000, async () => { state.past = (await (await ask(`history?after=${state.past}`)).json()).next; await (await ask('hosts')).text(); });
  return state;
}
const ask = async (path) => fetch(new URL(path, url));
async function lost() {
  const metrics = await (await fetch('http://127.0.0.1:9800/metrics')).text();
  return metrics.split('\n').filter((line) => line.startsWith('asymq_lost_frames_total')).reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

const tests = {
  async 'the page shows the rates and delays of the traffic'() {
    const page = await open();
    await page.waitForFunction(() => /Mbit/.test(document.getElementById('up-rate').textContent), null, { timeout: 20000 });
    assert.match(await text(page, '#title'), /^asymq gateway: <i>lan -> wan, asymq, asymq down, 2mbit up, 20mbit down/);
    const up = megabits(await text(page, '#up-rate'));
    assert(up > 1 && up < 2.2, String(up));
    // The bar shows the same share of the current rate as the text.
    const [share, shown] = await page.evaluate(() => {
      const of = document.getElementById('up-rate');
      return [Number(of.parentElement.style.getPropertyValue('--share')), of.textContent];
    });
    assert(Math.abs(share - Math.min(1, megabits(shown) / 2)) < 0.01, `${share} for ${shown}`);
    assert.match(await text(page, '#acks'), /^\d+, \d+ \/s$/);
    assert.match(await text(page, '#up-queue'), /^(empty|\d+ packets?)$/);
    assert.match(await text(page, '#round-trip'), / m?s$/);
    assert((await page.locator('#control tr').count()) > 2);
    assert.equal(await page.locator('h1 i').count(), 0, 'a name is no HTML');
    assert.match(await page.locator('#classes').textContent(), /uplinksent\d+ \/s/);
    assert.match(await text(page, '#moves'), /fixed by the settings: up 2\.00 Mbit\/s, down 20\.0 Mbit\/s/);
    await page.context().close();
  },

  async 'a change of the settings is in the title'() {
    const page = await open();
    execFileSync(asymq, ['gateway', 'set', '--control', control, '--qdisc', 'fq']);
    await page.waitForFunction(() => document.title.includes('fq,'), null, { timeout: 10000 });
    execFileSync(asymq, ['gateway', 'set', '--control', control, '--qdisc', 'asymq']);
    await page.context().close();
  },

  async 'keys alone choose the time and pause the page'() {
    const page = await open();
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'span');
    await page.keyboard.press('ArrowUp');
    assert.equal(await page.inputValue('#span'), '120');
    assert.equal(await text(page, '.begin >> nth=0'), '2 min ago');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Space');
    assert.equal(await page.getAttribute('#pause', 'aria-pressed'), 'true');
    await page.context().close();
  },

  async 'every control and drawing has a name'() {
    const page = await open();
    const nameless = await page.evaluate(() => [...document.querySelectorAll('canvas, select, button')]
      .filter((of) => !(of.getAttribute('aria-label') || of.textContent.trim() || of.labels?.length)).map((of) => of.id));
    assert.deepEqual(nameless, []);
    await page.context().close();
  },

  async 'it fits a phone and a desk, in light and dark'() {
    const grounds = new Set();
    for (const [name, width, height] of [['phone', 390, 844], ['desk', 1280, 800]]) {
      for (const colorScheme of ['light', 'dark']) {
        const page = await open({ width, height, colorScheme });
        assert((await page.evaluate(() => document.documentElement.scrollWidth)) <= width, `${name} scrolls sideways`);
        grounds.add(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
        const drawn = await page.evaluate(() => {
          const canvas = document.getElementById('draw-up');
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          return data.filter((of, at) => at % 4 === 3 && of > 250).length;
        });
        assert(drawn > 50, `${name}, ${colorScheme}: ${drawn} pixels of the curve`);
        if (pictures) await page.screenshot({ path: `${pictures}/gateway-${name}-${colorScheme}.png`, fullPage: width < 500 });
        await page.context().close();
      }
    }
    assert.equal(grounds.size, 2);
  },

  async 'hosts and flows have the rates that they send, the largest first'() {
    const page = await open();
    const cell = (host, column) => page.locator('#hosts tr', { has: page.locator(`[data-host="10.0.0.${host}"]`) }).locator('td').nth(column).textContent();
    await page.waitForFunction(() => document.querySelectorAll('#hosts button').length === 3, null, { timeout: 10000 });
    for (const [host, rate] of [[3, 0.2], [4, 0.4]]) {
      const shown = [];
      const found = () => shown.some((of) => Math.abs(of / rate - 1) < 0.1);
      // A busy machine sends in bursts, so some seconds have fewer packets.
      while (shown.length < 15 && !found()) { shown.push(megabits(await cell(host, 0))); await wait(1100); }
      assert(found(), `10.0.0.${host} sends ${rate}: ${shown}`);
    }
    const largest = page.locator('#hosts button').first();
    assert.match(await largest.textContent(), /^10\.0\.0\.1, \d+ flows$/);
    assert(megabits(await cell(1, 1)) > 5, 'the download');
    // Operated by keys; it stays open and keeps the focus.
    await largest.focus();
    await page.keyboard.press('Enter');
    await wait(2500);
    assert.equal(await page.evaluate(() => document.activeElement.dataset.host), '10.0.0.1');
    const flows = await page.locator('#hosts .flow th').allTextContents();
    assert.match(flows[0], /^TCP \d+ – 10\.0\.0\.2:5001$/);
    assert(flows.some((flow) => /^UDP \d+ – 10\.0\.0\.2:9$/.test(flow)), flows.join());
    await page.context().close();
  },

  async 'a gateway that was killed and started again is shown by the page that was open'() {
    const page = await open();
    await page.waitForFunction(() => document.querySelectorAll('#hosts button').length > 0, null, { timeout: 10000 });
    const before = await page.evaluate(() => past.id);
    process.kill(gateway(), 'SIGKILL');
    await page.waitForFunction((id) => past.id !== id, before, { timeout: 20000 });
    await page.waitForFunction(() => document.getElementById('error').hidden && past.rows.length > 0 && document.querySelectorAll('#hosts button').length > 0, null, { timeout: 20000 });
    assert((await page.evaluate(() => past.rows.length)) < 20, 'it counts from the start');
    noise.splice(0); // The browser's own messages about missing answers.
    await page.context().close();
  },

  async 'a paused page asks for nothing but the history'() {
    const page = await open();
    await page.locator('#pause').click();
    await wait(500);
    const asked = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    await wait(3000);
    assert.deepEqual([...new Set(asked)], ['/history']);
    await page.context().close();
  },

  async 'five viewers, dead readers and 200 connections cost little, lose nothing and keep nobody waiting'() {
    const lostBefore = await lost();
    const shares = { none: [], five: [] };
    for (const viewers of ['none', 'five', 'five', 'none']) {
      const viewing = Array.from({ length: viewers === 'five' ? 5 : 0 }, viewer);
      await wait(4000); // a recording ends, or begins
      shares[viewers].push(await share());
      for (const of of viewing) { of.stop = true; await of.done; }
    }
    const mean = (of, index) => (of[0][index] + of[1][index]) / 2;
    const [page, none, five] = [mean(shares.five, 0), mean(shares.none, 1), mean(shares.five, 1)];
    console.log(`   ${2 * SECONDS} s each: five viewers take ${page.toFixed(2)} % of a core on the page's threads; the whole gateway ${none.toFixed(2)} % without, ${five.toFixed(2)} % with them`);
    assert(page < 2, `${page} %`);
    // Some clients send requests and never read, some send nothing, some send a byte per second.
    const dead = ['/history', '/hosts'].map((path) => { const socket = net.connect(9801, '127.0.0.1'); socket.write(`GET ${path} HTTP/1.1\r\n\r\n`); socket.pause(); return socket; });
    const silent = Array.from({ length: 200 }, () => net.connect(9801, '127.0.0.1').on('error', () => {}));
    const slow = net.connect(9801, '127.0.0.1').on('error', () => {});
    const drip = setInterval(() => slow.write('G'), 1000);
    const pages = [];
    for (let viewer = 0; viewer < 5; viewer++) pages.push(await open());
    await wait(6000);
    assert.equal(await lost(), lostBefore, 'lost frames');
    for (const page of pages) {
      assert.equal(await page.locator('#error').isHidden(), true);
      await page.context().close();
    }
    clearInterval(drip);
    [...dead, ...silent, slow].forEach((socket) => socket.destroy());
  },
};

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
    assert.deepEqual(noise.splice(0), [], 'the page is silent and asks for nothing elsewhere');
    console.log(`ok: ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAILED: ${name}\n${error.stack}`);
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
