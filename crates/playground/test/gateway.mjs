// The gateway's page in a real browser: `node gateway.mjs URL CHROMIUM PID ASYMQ CONTROL [PICTURES]`, beside a gateway with
// traffic both ways; scripts/page-test calls it so.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import net from 'node:net';
import { chromium } from 'playwright-core';

const [url, executablePath, pid, asymq, control, pictures] = process.argv.slice(2);
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
// Nanoseconds that the threads of the page have had a processor.
const busy = () => readdirSync(`/proc/${pid}/task`).map((thread) => {
  const of = `/proc/${pid}/task/${thread}`;
  const name = readFileSync(`${of}/comm`, 'utf8').trim();
  return ['page', 'history'].includes(name) ? Number(readFileSync(`${of}/schedstat`, 'utf8').split(' ')[0]) : 0;
}).reduce((sum, of) => sum + of, 0);
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

const tests = {
  async 'the page shows the rates and delays of the traffic'() {
    const page = await open();
    await page.waitForFunction(() => /Mbit/.test(document.getElementById('up-rate').textContent), null, { timeout: 20000 });
    assert.match(await text(page, '#title'), /^asymq gateway: lan -> wan, asymq, asymq down, 2mbit up, 20mbit down/);
    const up = megabits(await text(page, '#up-rate'));
    assert(up > 1 && up < 2.2, String(up));
    assert.match(await text(page, '#acks'), /^\d+, \d+ \/s$/);
    assert.match(await text(page, '#round-trip'), / m?s$/);
    assert((await page.locator('#control tr').count()) > 2);
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

  async 'five viewers and a dead reader cost little and keep nobody waiting'() {
    const dead = [1, 2, 3].map(() => { const socket = net.connect(9801, '127.0.0.1'); socket.write('GET /history HTTP/1.1\r\n\r\n'); socket.pause(); return socket; });
    const pages = [];
    for (let viewer = 0; viewer < 5; viewer++) pages.push(await open());
    const [before, begun] = [busy(), Date.now()];
    await wait(8000);
    const share = ((busy() - before) / 1e6 / (Date.now() - begun)) * 100;
    console.log(`   five viewers: ${share.toFixed(2)} % of a core`);
    assert(share < 2, `${share} %`);
    for (const page of pages) {
      assert.equal(await page.locator('#error').isHidden(), true);
      await page.context().close();
    }
    dead.forEach((socket) => socket.destroy());
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
