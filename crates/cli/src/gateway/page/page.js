'use strict';
// The gateway's page: an hour of snapshots, asked for once a second.

const $ = (id) => document.getElementById(id);
const HOUR = 3600;
const RETRY = 3000;
let past = { rows: [], next: 0, id: null };
let columns = {};
let latest = null;
let paused = false;

async function ask() {
  try {
    const answer = await fetch(`history?after=${past.next}`, { cache: 'no-store' });
    if (!answer.ok) throw new Error(`the gateway answers ${answer.status}`);
    take(await answer.json());
    $('error').hidden = true;
    setTimeout(ask, 1000);
  } catch (error) {
    $('error').textContent = `No answer (${error.message}); asking again every ${RETRY / 1000} s.`;
    $('error').hidden = false;
    setTimeout(ask, RETRY);
  }
}

function take(answer) {
  // Another gateway, which counts from the start.
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
  showTables(last);
}

// Samples as the playground's curves take them, of the last seconds at the right end.
function samples(rows, seconds, of) {
  const empty = new Array(8).fill(0);
  return [...Array(Math.max(0, seconds - rows.length)).fill(empty), ...rows.map(of)];
}

function drawWay(way, rows, last, seconds) {
  const highest = Math.max(1e5, ...rows.map((row) => value(row, `${way}_all`)));
  const capacity = latest.capacity[way] || 0;
  const max = Math.max(capacity, capacity && highest < capacity * 1.05 ? 0 : nice(highest));
  const share = (row, name) => value(row, `${way}_${name}`) / max;
  const run = { head: { sample: 1 }, samples: samples(rows, seconds, (row) => [share(row, 'all'), share(row, 'data')]) };
  drawUse($(`draw-${way}`), run, seconds, 0, 1);
  const rate = value(last, `${way}_all`);
  $(`${way}-rate`).textContent = rateText(rate);
  $(`${way}-rate`).nextElementSibling.style.setProperty('--share', Math.min(1, rate / max));
  $(`${way}-rate`).parentElement.style.setProperty('--share', Math.min(1, rate / max));
  $(`${way}-acked`).textContent = rateText(value(last, `${way}_acked`));
  $(`${way}-max`).textContent = `the top line is ${rateText(max)}`;
  $(`draw-${way}`).setAttribute('aria-label', `${way}link in use: ${rateText(rate)} now, at most ${rateText(highest)} in this time`);
  const counts = ['ack', 'data', 'other'].map((kind) => value(last, `${way}_backlog_${kind}`));
  const total = counts.reduce((sum, count) => sum + count, 0);
  // The kind in the two highest bits, as in the playground.
  const packets = counts.flatMap((count, kind) => Array(Math.min(count, 2000)).fill((kind << 14) + 1));
  drawQueue($(`draw-${way}-queue`), { sent: 0, total, packets }, Math.max(50, total));
  $(`${way}-queue`).textContent = total ? `${total} packets` : 'nothing';
  $(`draw-${way}-queue`).setAttribute('aria-label', `${counts[0]} ACKs, ${counts[1]} packets of data and ${counts[2]} others wait for the ${way}link`);
}

function drawDelays(id, rows, seconds, solid, dashed, name) {
  const of = (row) => { const sample = new Array(8).fill(0); sample[4] = value(row, solid); sample[6] = value(row, dashed); return sample; };
  const longest = Math.max(...rows.flatMap((row) => [value(row, solid), value(row, dashed)]), 0);
  drawWaits($(id), { head: { sample: 1 }, samples: samples(rows, seconds, of) }, seconds, nice(Math.max(20, longest)));
  $(id).setAttribute('aria-label', `${name}: at most ${msText(longest)} in this time`);
}

function showTables(last) {
  const row = (cells) => {
    const line = document.createElement('tr');
    line.append(...cells.map((text, index) => Object.assign(document.createElement(index ? 'td' : 'th'), { textContent: text, ...(index ? {} : { scope: 'row' }) })));
    return line;
  };
  const of = (prefix, text) => ['ack', 'data', 'other'].map((kind) => text(value(last, `${prefix}_${kind}`)));
  $('classes').replaceChildren(
    row(['wait, 99 %', ...of('wait', msText)]),
    row(['round trip, median', ...of('round_trip', (ms) => (ms ? msText(ms) : '–'))]),
    row(['in the queue', ...of('up_backlog', String)]),
    row(['dropped', ...of('dropped', (count) => `${Math.round(count)} /s`)]),
  );
  const control = Object.entries(latest.control).map(([name, number]) => row([name, Number(number.toPrecision(5)).toString()]));
  $('control').replaceChildren(...(control.length ? control : [row(['none', ''])]));
}

$('span').onchange = () => latest && draw();
$('pause').onclick = () => {
  paused = !paused;
  $('pause').setAttribute('aria-pressed', String(paused));
  $('pause').textContent = paused ? 'Go on' : 'Pause';
  if (!paused && latest) draw();
};
addEventListener('resize', () => latest && draw());
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => latest && draw());
ask();
