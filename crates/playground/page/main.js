// The page: controls, two runs, playback.

const $ = (id) => document.getElementById(id);
const still = matchMedia('(prefers-reduced-motion: reduce)');
const player = { time: 0, playing: !still.matches, last: 0 };
const sides = [];
let catalog = { disciplines: [], tcp: [] };

// --- controls -------------------------------------------------------------------------------------------------

function makeSliders() {
  for (const slider of SLIDERS) {
    const box = document.createElement('div');
    box.className = 'slider';
    const label = Object.assign(document.createElement('label'), { textContent: slider.label, htmlFor: `slide-${slider.key}` });
    const exact = Object.assign(document.createElement('input'), { type: 'text', id: `exact-${slider.key}`, spellcheck: false });
    exact.setAttribute('aria-label', `${slider.label}, exact value`);
    const range = Object.assign(document.createElement('input'), { type: 'range', id: `slide-${slider.key}`, min: 0, max: slider.steps.length - 1, step: 1 });
    range.oninput = () => set(slider.key, slider.steps[range.value]);
    exact.onchange = () => set(slider.key, exact.value.trim());
    box.append(label, exact, range);
    $('sliders').append(box);
    Object.assign(slider, { range, exact });
  }
  const label = Object.assign(document.createElement('label'), { textContent: 'Congestion control' });
  const select = Object.assign(document.createElement('select'), { id: 'tcp' });
  select.onchange = () => set('tcp', select.value);
  label.append(select);
  $('sliders').append(label);
  $('duration').append(...[10, 20, 30, 60, 120].map((seconds) => new Option(seconds, `${seconds}s`)));
  $('duration').onchange = () => set('duration', $('duration').value);
  $('seed').onchange = () => set('seed', $('seed').value.trim());
  $('dice').onclick = () => set('seed', String((Number(state.values.seed) || 0) + 1));
  $('flags').onchange = () => { state.further = readFlags($('flags').value); changed(); };
  $('link').onsubmit = (event) => event.preventDefault();
}

// Selects a value; adds it to the list if it is missing.
function choose(select, value) {
  if (![...select.options].some((option) => option.value === value)) select.add(new Option(value, value));
  select.value = value;
}

function showControls() {
  for (const { key, steps, range, exact } of SLIDERS) {
    const value = state.values[key];
    range.value = stepOf(steps, value);
    range.setAttribute('aria-valuetext', spoken(key, value));
    exact.value = value;
  }
  choose($('tcp'), state.values.tcp);
  choose($('duration'), state.values.duration);
  $('seed').value = state.values.seed;
  $('flags').value = flagsLine();
  if (state.further.length) $('further').open = true;
  sides.forEach((side, index) => {
    choose(side.select, state.qdiscs[index]);
    side.shaper.parentElement.hidden = !falls();
    choose(side.shaper, state.shapers[index]);
    const entry = catalog.disciplines.find(({ name }) => name === state.qdiscs[index]);
    side.summary.textContent = entry ? entry.summary + '.' : '';
    $(`command-${index}`).textContent = commandOf(index);
  });
}

function spoken(key, value) {
  const words = value.replace(/(\d)mbit$/, '$1 Mbit/s').replace(/(\d)kbit$/, '$1 kbit/s').replace(/(\d)ms$/, '$1 ms');
  if (key === 'line') return `${Math.round(Number(value) * 100)} % of its rate`;
  return key.startsWith('buffer') ? words.replace(/(\d)p$/, '$1 packets') : words;
}

function set(key, value) {
  if (value) state.values[key] = value;
  changed();
}

let due = 0;
function changed() {
  showControls();
  history.replaceState(null, '', hashOf(state));
  // Dragging a slider starts at most one run per frame.
  if (!due) due = requestAnimationFrame(() => { due = 0; startRuns(); });
}

function startRuns() {
  sides.forEach((side, index) => {
    const words = wordsOf(index);
    if (String(words) !== String(side.run.words)) side.run.start(words);
  });
}

// --- results --------------------------------------------------------------------------------------------------

const percent = (share) => `${Math.round(share * 100)} %`;
const title = (name) => catalog.disciplines.find((entry) => entry.name === name)?.title ?? name;

function showResult({ run, root, numbers, averages, speed, end }) {
  const { result } = run;
  const done = Boolean(run.report);
  root.classList.toggle('stale', Boolean(run.error));
  root.setAttribute('aria-busy', String(!done && !run.error));
  root.dataset.run = run.id;
  if (!done) return;
  const shares = { down: result.down.delivered, up: result.up.delivered };
  averages.down.textContent = `${percent(result.down.utilization)} on average`;
  averages.up.textContent = `${percent(result.up.utilization)} on average`;
  for (const [name, share] of Object.entries(shares)) {
    numbers[name].querySelector('b').textContent = percent(share);
    numbers[name].style.setProperty('--share', Math.min(share, 1));
  }
  const call = result.up.probe_ms?.p99;
  numbers.call.querySelector('b').textContent = call === undefined ? '–' : msText(call);
  const { duration } = run.head;
  end.textContent = `${duration} s`;
  speed.textContent = `${duration} s simulated in ${(run.busy / 1000).toFixed(2)} s, ${Math.round(duration / (run.busy / 1000))} times real time`;
}

function showVerdict() {
  const errors = [...new Set(sides.map(({ run }) => run.error).filter(Boolean))];
  $('error').hidden = !errors.length;
  $('error').textContent = errors.join('\n');
  // After an error, no run is expected.
  if (errors.length && sides.some(({ run }) => !run.report)) $('verdict').replaceChildren(document.createElement('p'));
  if (sides.some(({ run }) => !run.report || run.error)) return;
  const said = sides.map(({ run: { result } }, index) => {
    const parts = [];
    for (const [key, flow, share] of [['flows-down', 'download', result.down.delivered], ['flows-up', 'upload', result.up.delivered]]) {
      const count = state.values[key];
      if (count === '0') continue;
      const gets = count === '1' ? `the ${flow} gets ` : `the ${flow}s get `;
      parts.push(parts.length ? [gets.replace(/gets? $/, ''), percent(share), ''] : [gets, percent(share), ' of the link']);
    }
    if (result.up.probe_ms) parts.push(['a call waits ', msText(result.up.probe_ms.p99), '']);
    const shaper = falls() ? `, rate ${state.shapers[index]},` : '';
    return [title(state.qdiscs[index]) + shaper, parts];
  });
  const bold = (text) => Object.assign(document.createElement('b'), { textContent: text });
  $('verdict').replaceChildren(...said.map(([name, parts]) => {
    const line = document.createElement('p');
    line.append('With ', bold(name), ' ');
    parts.forEach(([before, number, after], index) => {
      line.append([, ', ', ', and '][index && (index === parts.length - 1 ? 2 : 1)] ?? '', before, bold(number), after);
    });
    line.append('.');
    return line;
  }));
  const { head } = sides[0].run;
  $('data-time').textContent = msText((1500 * 8 * 1000) / head.up);
}

// --- drawing --------------------------------------------------------------------------------------------------

const length = () => Math.max(...sides.map(({ run }) => run.head?.duration ?? 0), 1);

function drawCurves() {
  const [duration, longest] = [length(), nice(Math.max(20, ...sides.map(({ run }) => run.longest ?? 0)))];
  for (const { run, curves } of sides) {
    drawUse(curves.down, run, duration, 2, 3);
    drawUse(curves.up, run, duration, 0, 1);
    drawWaits(curves.wait, run, duration, longest);
  }
}

function drawQueues() {
  const most = [0, 1].map((direction) => Math.max(...sides.map(({ run }) => run.most?.[direction] ?? 1)));
  const at = Math.min(player.time, length());
  for (const { run, queues, head } of sides) {
    queues.forEach(({ canvas, count }, direction) => {
      const queue = run.queue(at, direction);
      drawQueue(canvas, queue, most[direction]);
      const bytes = queue.packets.reduce((sum, packet) => sum + (packet & 0x3fff), 0);
      const rate = run.head?.[direction ? 'down' : 'up'] ?? 1;
      const wait = queue.total > queue.packets.length ? '' : ` = ${msText((bytes * 8000) / rate)}`;
      count.textContent = queue.total ? `${queue.total} packet${queue.total === 1 ? '' : 's'}${wait}` : 'nothing';
    });
    head.style.left = `${(at / length()) * 100}%`;
  }
  $('time').max = length();
  $('time').value = at;
  $('time').setAttribute('aria-valuetext', `${at.toFixed(1)} seconds`);
  $('clock').textContent = `${at.toFixed(2)} s`;
}

function describe({ run, curves, queues }) {
  if (!run.result) return;
  const { up, down } = run.result;
  curves.down.setAttribute('aria-label', `Downlink over time: ${percent(down.data)} data, ${percent(down.ack)} ACKs on average`);
  curves.up.setAttribute('aria-label', `Uplink over time: ${percent(up.data)} data, ${percent(up.ack)} ACKs on average`);
  curves.wait.setAttribute('aria-label', `Longest waits for the uplink over time: ACKs ${msText(up.sojourn_by_class_ms.ack?.p99 ?? 0)}, a call ${msText(up.probe_ms?.p99 ?? 0)} (99th percentiles)`);
  queues.forEach(({ canvas }, direction) => canvas.setAttribute('aria-label', `Packets that wait for the ${direction ? 'downlink' : 'uplink'}, the oldest first; at most ${run.most[direction]} in this run`));
}

let dirty = { curves: true, queues: true };
function frame(now) {
  const passed = Math.min(now - player.last, 100) / 1000;
  player.last = now;
  if (player.playing && sides.every(({ run }) => run.frames.length)) {
    player.time += passed * Number($('pace').value);
    const known = Math.min(...sides.map(({ run }) => run.frames.length * run.head.frame));
    if (player.time > length()) player.time = 0;
    else player.time = Math.min(player.time, Math.max(known, 0.02));
    dirty.queues = true;
  }
  if (dirty.curves) drawCurves();
  if (dirty.queues || dirty.curves) drawQueues();
  dirty = { curves: false, queues: false };
  requestAnimationFrame(frame);
}

// --- playback and sharing -------------------------------------------------------------------------------------

function play(playing) {
  player.playing = playing;
  $('play').classList.toggle('playing', playing);
  $('play').setAttribute('aria-label', playing ? 'Pause' : 'Play');
}

function seek(seconds) {
  player.time = Math.max(0, Math.min(seconds, length()));
  dirty.queues = true;
}

function makeTransport() {
  play(player.playing);
  $('play').onclick = () => play(!player.playing);
  $('time').oninput = () => { play(false); seek(Number($('time').value)); };
  document.addEventListener('keydown', (event) => {
    if (event.key !== ' ' || event.target.closest('input, select, button, summary, pre, a')) return;
    event.preventDefault();
    play(!player.playing);
  });
}

async function copy(text, from) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(from);
    return document.execCommand('copy');
  }
}

function makeCopying() {
  for (const button of document.querySelectorAll('[data-copy]')) {
    button.setAttribute('aria-label', `Copy the ${$(button.dataset.copy).getAttribute('aria-label').toLowerCase()}`);
    button.onclick = async () => {
      const source = $(button.dataset.copy);
      button.textContent = (await copy(source.textContent, source)) ? 'Copied' : 'Press Ctrl+C';
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    };
  }
  for (const button of document.querySelectorAll('[data-save]')) {
    const { run } = sides[button.dataset.save];
    button.setAttribute('aria-label', `Save the JSON of the ${button.dataset.save === '0' ? 'first' : 'second'} discipline's run`);
    button.onclick = () => {
      if (!run.report) return;
      const link = Object.assign(document.createElement('a'), { download: `asymq-${state.qdiscs[run.side]}.json` });
      link.href = URL.createObjectURL(new Blob([run.report], { type: 'application/json' }));
      link.click();
      URL.revokeObjectURL(link.href);
    };
  }
  $('share').onclick = async () => {
    history.replaceState(null, '', hashOf(state));
    $('copied').textContent = (await copy(location.href, $('share'))) ? 'Copied: the whole state is in the link.' : 'The link is in the address bar.';
  };
}

// --- start ----------------------------------------------------------------------------------------------------

function makeCard(index) {
  const root = $('card').content.firstElementChild.cloneNode(true);
  const name = index ? 'Second discipline' : 'First discipline';
  root.setAttribute('aria-label', name);
  const select = root.querySelector('.qdisc');
  select.setAttribute('aria-label', name);
  select.onchange = () => { state.qdiscs[index] = select.value; changed(); };
  const shaper = root.querySelector('.shaper select');
  shaper.setAttribute('aria-label', `Rate of the ${index ? 'second' : 'first'} discipline's shaper`);
  shaper.onchange = () => { state.shapers = state.shapers.map((name, side) => (side === index ? shaper.value : name)); changed(); };
  const curves = Object.fromEntries([...root.querySelectorAll('[data-curve]')].map((figure) => [figure.dataset.curve, figure.querySelector('canvas')]));
  const queues = [...root.querySelectorAll('.queue')].map((figure) => ({ canvas: figure.querySelector('canvas'), count: figure.querySelector('output') }));
  const numbers = Object.fromEntries(['down', 'up', 'call'].map((part) => [part, root.querySelector(`dd.${part}`)]));
  const averages = Object.fromEntries([...root.querySelectorAll('[data-curve]')].map((figure) => [figure.dataset.curve, figure.querySelector('output')]));
  const side = { root, averages, select, shaper, curves, queues, numbers, summary: root.querySelector('.summary'), head: root.querySelector('.head'), speed: root.querySelector('.speed'), end: root.querySelector('.end') };
  side.run = new Run(index, (run, data) => {
    if (data.head || data.report || run.error) { showResult(side); showVerdict(); describe(side); }
    dirty.curves = true;
  });
  const area = root.querySelector('.curves');
  const point = (event) => {
    const { left, width } = area.getBoundingClientRect();
    play(false);
    seek(((event.clientX - left) / width) * length());
  };
  area.onpointerdown = (event) => { area.setPointerCapture(event.pointerId); point(event); };
  area.onpointermove = (event) => { if (event.buttons) point(event); };
  $('cards').append(root);
  return side;
}

// Returns the WebAssembly module, which the page contains in compressed form.
async function readModule() {
  const packed = Uint8Array.from(atob($('module').textContent.trim()), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
}

async function main() {
  readColours();
  makeSliders();
  sides.push(makeCard(0), makeCard(1));
  makeTransport();
  makeCopying();
  readHash(location.hash);
  const module = await readModule();
  [catalog] = await Promise.all(sides.map(({ run }) => run.load(module)));
  for (const { select } of sides) select.append(...catalog.disciplines.map((entry) => new Option(entry.title, entry.name)));
  $('tcp').append(...catalog.tcp.map((entry) => new Option(entry.title, entry.name)));
  $('version').textContent = catalog.version;
  showControls();
  $('verdict').firstChild.textContent = 'Simulating …';
  if (!player.playing) player.time = 20;
  startRuns();
  requestAnimationFrame(frame);
  addEventListener('hashchange', () => { readHash(location.hash); showControls(); startRuns(); });
  addEventListener('resize', () => { dirty.curves = true; });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { readColours(); dirty.curves = true; });
}

main().catch((error) => {
  $('verdict').textContent = '';
  $('error').hidden = false;
  $('error').textContent = `This browser cannot run the simulator: ${error.message}`;
});
