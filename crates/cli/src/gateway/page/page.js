'use strict';
// The gateway's page: an hour of snapshots and a table of hosts, requested once a second.

const $ = (id) => document.getElementById(id);
const HOUR = 3600;
const RETRY = 3000;
const WAYS = ['up', 'down'];
let past = { rows: [], next: 0, id: null };
let columns = {};
let latest = null;
let paused = false;
const views = () => !paused && !document.hidden;

async function ask() {
  try {
    const answer = await fetch(`history?after=${past.next}`, { cache: 'no-store' });
    if (!answer.ok) throw new Error(`the gateway answers ${answer.status}`);
    take(await answer.json());
    if (views()) {
      const table = await (await fetch('hosts', { cache: 'no-store' })).json();
      if (!pressed) showHosts(table);
    }
    $('error').hidden = true;
    setTimeout(ask, 1000);
  } catch (error) {
    $('error').textContent = `No answer (${error.message}); next attempt in ${RETRY / 1000} s.`;
    $('error').hidden = false;
    setTimeout(ask, RETRY);
  }
}

function take(answer) {
  // A restarted gateway counts from zero.
  if (answer.id !== past.id) {
    if (past.next > 0 && past.id !== null) { past = { rows: [], next: 0, id: answer.id }; return; }
    past.id = answer.id;
  }
  columns = Object.fromEntries(answer.columns.map((name, index) => [name, index]));
  past.rows.push(...answer.rows);
  past.rows.splice(0, Math.max(0, past.rows.length - HOUR));
  past.next = answer.next;
  latest = answer;
  if (!paused) draw();
}

const value = (row, name) => row?.[columns[name]] ?? 0;
const rateText = (rate) => (rate >= 1e6 ? `${(rate / 1e6).toFixed(rate < 1e7 ? 2 : 1)} Mbit/s` : `${Math.round(rate / 1e3)} kbit/s`);

function draw() {
  readColours();
  $('title').textContent = latest.title;
  document.title = latest.title;
  const seconds = Number($('span').value);
  const rows = past.rows.slice(-seconds);
  const last = rows.at(-1);
  for (const begin of document.querySelectorAll('.begin')) begin.textContent = `${seconds / 60} min ago`;
  for (const way of ['up', 'down']) drawWay(way, rows, last, seconds);
  $('acks').textContent = `${Math.round(value(last, 'acks_sent'))}, ${Math.round(value(last, 'acks_filtered'))} /s`;
  const trip = value(last, 'round_trip_ack') || value(last, 'round_trip_other');
  $('round-trip').textContent = trip ? msText(trip) : '–';
  drawDelays('draw-wait', rows, seconds, 'wait_ack', 'wait_other', 'Waits for the uplink');
  drawDelays('draw-trips', rows, seconds, 'round_trip_ack', 'round_trip_other', 'Round trips');
  showTables();
}

// Returns samples in the form of the playground's curves. The latest one is at the right edge; missing ones are zeros.
function samples(rows, seconds, of) {
  const empty = new Array(8).fill(0);
  return [...Array(Math.max(0, seconds - rows.length)).fill(empty), ...rows.map(of)];
}

function drawWay(way, rows, last, seconds) {
  const highest = Math.max(1e5, ...rows.map((row) => value(row, `${way}_all`)));
  const { capacity } = latest.now[way];
  const max = Math.max(capacity, capacity && highest < capacity * 1.05 ? 0 : nice(highest));
  const share = (row, name) => value(row, `${way}_${name}`) / max;
  const run = { head: { sample: 1 }, samples: samples(rows, seconds, (row) => [share(row, 'all'), share(row, 'data')]) };
  drawUse($(`draw-${way}`), run, seconds, 0, 1);
  const rate = value(last, `${way}_all`);
  $(`${way}-rate`).textContent = rateText(rate);
  // The bar shows the current rate, which an earlier point of the curve may exceed.
  const full = Math.min(1, rate / (capacity || max));
  for (const part of ['nextElementSibling', 'parentElement']) $(`${way}-rate`)[part].style.setProperty('--share', full);
  $(`${way}-acked`).textContent = rateText(value(last, `${way}_acked`));
  $(`${way}-max`).textContent = `the top line is ${rateText(max)}`;
  $(`draw-${way}`).setAttribute('aria-label', `${way}link in use: ${rateText(rate)} now, at most ${rateText(highest)} in this time`);
  const waiting = backlogs(way).reduce((sum, count) => sum + count, 0);
  $(`${way}-queue`).textContent = waiting ? `${waiting} packet${waiting === 1 ? '' : 's'}` : 'empty';
}

const backlogs = (way) => KINDS.map((kind) => latest.now[way][kind].backlog_packets);

function drawDelays(id, rows, seconds, solid, dashed, name) {
  const of = (row) => { const sample = new Array(8).fill(0); sample[4] = value(row, solid); sample[6] = value(row, dashed); return sample; };
  const longest = Math.max(...rows.flatMap((row) => [value(row, solid), value(row, dashed)]), 0);
  drawWaits($(id), { head: { sample: 1 }, samples: samples(rows, seconds, of) }, seconds, nice(Math.max(20, longest)));
  $(id).setAttribute('aria-label', `${name}: at most ${msText(longest)} in this time`);
}

function row(cells, head = 'row') {
  const line = document.createElement('tr');
  line.append(...cells.map((text, index) => Object.assign(document.createElement(index ? 'td' : 'th'), { textContent: text, ...(index ? {} : { scope: head }) })));
  return line;
}

function showTables() {
  const lines = [];
  for (const way of WAYS) {
    const [now, before] = [latest.now[way], (latest.before ?? latest.now)[way]];
    const of = (text) => KINDS.map((kind) => text(now[kind], kind));
    const rate = (name) => of((each, kind) => {
      const count = Math.round((each[name] - before[kind][name]) / latest.now.interval);
      return count > 0 ? `${count} /s` : '–';
    });
    const counts = backlogs(way);
    lines.push(
      row([`${way}link`], 'colgroup'),
      row(['sent', ...rate('packets')]),
      row(['filtered', ...rate('filtered')]),
      row(['dropped', ...rate('dropped')]),
      row(['marked', ...rate('marked')]),
      row(['in the queue', ...counts.map(String)]),
      row(['wait, 99 %', ...of((each) => msText(each.sojourn_p99_ms))]),
    );
    if (way === 'up') lines.push(row(['round trip, median', ...of((each) => (each.round_trip_p50_ms ? msText(each.round_trip_p50_ms) : '–'))]));
  }
  $('classes').replaceChildren(...lines);
  const digits = (number) => (number === undefined ? '' : Number(number.toPrecision(5)).toString());
  const { up: { control }, down: { control: down } } = latest.now;
  const names = [...new Set([...Object.keys(control), ...Object.keys(down)])];
  $('control').replaceChildren(...(names.length ? names.map((name) => row([name, digits(control[name]), digits(down[name])])) : [row(['none', '', ''])]));
  showMoves();
}

const WHY = {
  start: 'nothing was measured yet',
  queue: 'a queue built up in the line behind the shaper',
  search: 'packets wait in the shaper and none in the line: a higher rate is tried',
  idle: 'no packets wait in the shaper, so nothing is learnt',
  blind: 'no packet that shows a delay arrived',
  path: 'the path became longer, without a queue',
  delivered: 'the rate stays above the delivered rate',
};

// Latest changes of a learnt rate by at least 2 %, and changes of settings.
function showMoves() {
  const moves = [];
  const from = {};
  let changes = null;
  for (const of of past.rows) {
    if (changes !== null && value(of, 'changes') > changes) moves.push([value(of, 'time'), 'the settings were changed']);
    changes = value(of, 'changes');
    for (const way of WAYS) {
      const rate = value(of, `${way}_learnt`);
      if (!rate) { delete from[way]; continue; }
      const before = from[way] ??= rate;
      if (Math.abs(rate / before - 1) < 0.02) continue;
      const reason = latest.reasons[value(of, `${way}_why`)];
      moves.push([value(of, 'time'), `${way} ${rateText(before)} → ${rateText(rate)}: ${WHY[reason] ?? reason}`]);
      from[way] = rate;
    }
  }
  const last = past.rows.at(-1);
  const fixed = WAYS.filter((way) => !value(last, `${way}_learnt`) && latest.now[way].capacity).map((way) => `${way} ${rateText(latest.now[way].capacity)}`);
  const lines = moves.slice(-8).reverse().map(([time, text]) => {
    const line = document.createElement('li');
    line.append(Object.assign(document.createElement('time'), { textContent: new Date(time * 1000).toLocaleTimeString() }), ` ${text}`);
    return line;
  });
  if (fixed.length) lines.push(Object.assign(document.createElement('li'), { textContent: `fixed by the settings: ${fixed.join(', ')}` }));
  if (!lines.length) lines.push(Object.assign(document.createElement('li'), { textContent: 'no change' }));
  $('moves').replaceChildren(...lines);
}

// --- hosts and flows --------------------------------------------------------------------------------------------

const PROTOCOLS = { 1: 'ICMP', 6: 'TCP', 17: 'UDP', 47: 'GRE', 50: 'ESP', 58: 'ICMPv6', 132: 'SCTP' };
const open = new Set();
// The table is not redrawn while a button is pressed.
let pressed = false;
for (const [down, up] of [['pointerdown', 'pointerup'], ['keydown', 'keyup']]) {
  $('hosts').addEventListener(down, () => { pressed = true; });
  for (const end of [up, 'pointercancel', 'blur']) addEventListener(end, () => { pressed = false; });
}

function showHosts(table) {
  readColours();
  const focused = document.activeElement?.dataset?.host;
  const lines = [];
  const cells = ({ up, down }) => [
    rateText(up.rate), rateText(down.rate), String(up.backlog_packets + down.backlog_packets), `${msText(up.sojourn_mean_ms)}, ${msText(down.sojourn_mean_ms)}`,
  ];
  for (const host of table.hosts) {
    const name = host.address ?? 'not IP';
    const line = row(['', ...cells(host)]);
    const flows = `${host.flows} flow${host.flows === 1 ? '' : 's'}`;
    const button = Object.assign(document.createElement('button'), { type: 'button', textContent: `${name}, ${flows}` });
    button.dataset.host = name;
    button.setAttribute('aria-expanded', String(open.has(name)));
    button.onclick = () => { if (!open.delete(name)) open.add(name); showHosts(table); };
    line.firstChild.append(button);
    lines.push(line);
    if (open.has(name)) lines.push(...flowLines(host, cells));
  }
  if (table.others) lines.push(row([`other hosts, ${table.others.flows} flows`, ...cells(table.others)]));
  $('hosts').replaceChildren(...(lines.length ? lines : [row(['no traffic', '', '', '', ''])]));
  if (focused) [...document.querySelectorAll('#hosts button')].find((button) => button.dataset.host === focused)?.focus({ preventScroll: true });
}

function flowLines(host, cells) {
  const end = (address, port) => (port ? `${address.includes(':') ? `[${address}]` : address}:${port}` : address);
  const lines = host.largest.map((flow) => {
    const name = flow.to === null ? 'not IP' : `${PROTOCOLS[flow.protocol] ?? `protocol ${flow.protocol}`} ${flow.port || ''} – ${end(flow.to, flow.to_port)}`;
    const line = row([name, ...cells(flow)]);
    line.className = 'flow';
    return line;
  });
  const more = host.flows - host.largest.length;
  if (more > 0) lines.push(Object.assign(row([`${more} smaller flows`, '', '', '', '']), { className: 'flow' }));
  return lines;
}

$('span').onchange = () => latest && draw();
$('pause').onclick = () => {
  paused = !paused;
  $('pause').setAttribute('aria-pressed', String(paused));
  $('pause').textContent = paused ? 'Continue' : 'Pause';
  if (!paused && latest) draw();
};
addEventListener('resize', () => latest && draw());
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => latest && draw());
ask();
