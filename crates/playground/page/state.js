// The experiment: flags of the command line with their values, and two disciplines. The link to the page, the command
// line and the simulator use the same pairs.

const RATES = (from, to) => ['64kbit', '128kbit', '192kbit', '256kbit', '384kbit', '512kbit', '768kbit', '1mbit', '1.5mbit', '2mbit', '3mbit',
  '4mbit', '5mbit', '6mbit', '8mbit', '10mbit', '15mbit', '20mbit', '30mbit', '40mbit', '50mbit', '75mbit', '100mbit', '150mbit', '200mbit']
  .filter((rate, index, all) => index >= all.indexOf(from) && index <= all.indexOf(to));
const BUFFERS = [2, 5, 10, 20, 30, 40, 50, 75, 100, 133, 150, 200, 300, 400, 500, 700, 1000].map((packets) => packets + 'p');
const FLOWS = [...Array(11).keys(), 12, 15, 20, 30].map(String);

const SLIDERS = [
  { key: 'up', label: 'Uplink', steps: RATES('64kbit', '50mbit'), value: '1mbit' },
  { key: 'down', label: 'Downlink', steps: RATES('512kbit', '200mbit'), value: '10mbit' },
  { key: 'flows-up', label: 'Uploads', steps: FLOWS, value: '1' },
  { key: 'flows-down', label: 'Downloads', steps: FLOWS, value: '1' },
  { key: 'buffer', label: 'Buffer up', steps: BUFFERS, value: '100p' },
  { key: 'buffer-down', label: 'Buffer down', steps: BUFFERS, value: '100p' },
  { key: 'rtt', label: 'Round trip', steps: ['5ms', '10ms', '20ms', '30ms', '40ms', '60ms', '80ms', '100ms', '150ms', '200ms', '300ms', '400ms', '600ms'], value: '100ms' },
  { key: 'line', label: 'Line falls to', steps: ['0.2', '0.3', '0.4', '0.5', '0.6', '0.8', '1'], value: '1' },
];
const OTHERS = { tcp: 'newreno', duration: '60s', seed: '1', probe: '100ms' };
const DEFAULTS = { ...Object.fromEntries(SLIDERS.map(({ key, value }) => [key, value])), ...OTHERS };

// Rate sources of the two shapers, each before a modem. The modem's rate falls for the middle third of the run.
const SHAPERS = ['fixed', 'auto'];
const state = { values: { ...DEFAULTS }, further: [], qdiscs: ['droptail', 'asymq'], shapers: SHAPERS };
const falls = () => state.values.line !== '1';

// The link to the page contains all settings, so its meaning stays the same if defaults change.
function hashOf({ values, further, qdiscs, shapers }) {
  const rates = values.line === '1' ? [] : shapers.map((name) => ['shaper', name]);
  const sides = [...rates, ...qdiscs.map((name) => ['qdisc', name])];
  const pairs = [...Object.entries(values), ...further, ...sides];
  return '#' + pairs.map((pair) => pair.map(encodeURIComponent).join('=').replaceAll('%3A', ':').replaceAll('%2C', ',')).join('&');
}

function readHash(hash) {
  const read = { values: { ...DEFAULTS }, further: [], qdiscs: [], shapers: [] };
  for (const pair of hash.replace(/^#/, '').split('&').filter(Boolean)) {
    let [key, value = ''] = pair.split(/=(.*)/s);
    try { [key, value] = [decodeURIComponent(key), decodeURIComponent(value)]; } catch { /* as it stands */ }
    if (key === 'qdisc') read.qdiscs.push(value);
    else if (key === 'shaper') read.shapers.push(value);
    else if (key in DEFAULTS) read.values[key] = value;
    else read.further.push([key, value]);
  }
  const [first = 'droptail', second = read.qdiscs.length ? first : 'asymq'] = read.qdiscs;
  Object.assign(state, read, { qdiscs: [first, second], shapers: SHAPERS.map((name, side) => read.shapers[side] ?? name) });
}

const wordOf = ([key, value]) => (value === '' ? `--${key}` : `--${key}=${value}`);

// Returns the flags of the link. If the line's rate falls, adds the flags of modems, shapers and timestamps.
function linkOf(side) {
  const { line, ...values } = state.values;
  const pairs = Object.entries(values);
  if (!falls()) return pairs;
  const third = sizeOf(values.duration) / 3;
  const at = (thirds) => `${Math.round(thirds * third)}ms`;
  for (const direction of ['up', 'down']) {
    const rate = values[direction];
    const fallen = `${Math.max(1, Math.round(sizeOf(rate) * Number(line))) || line}bit`;
    pairs.push([`modem-${direction}`, rate], [`steps-${direction}`, `${at(1)}:${fallen}`], [`steps-${direction}`, `${at(2)}:${rate}`]);
    pairs.push([`shaper-${direction}`, state.shapers[side]]);
  }
  return [...pairs, ['timestamps', 'true']];
}

// Returns the simulator's input for one of the two sides.
function wordsOf(side) {
  return [...linkOf(side), ...state.further, ['qdisc', state.qdiscs[side]], ['runs', '1']].map(wordOf);
}

const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

function commandOf(side) {
  // A flag whose value is optional needs an equals sign before the value.
  const pair = ([key, value]) => `--${key}${key === 'timestamps' ? '=' : ' '}${quoted(value)}`;
  const known = [...linkOf(side), ['qdisc', state.qdiscs[side]], ['runs', '1']].map(pair);
  return ['asymq sim', ...known, ...state.further.map((flag) => quoted(wordOf(flag)))].join(' ');
}

// Splits a line like `--udp=up:1mbit --netem-up "loss 1%"` into pairs of flag and value.
function readFlags(line) {
  const words = (line.match(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g) ?? []).map((word) => word.replace(/"([^"]*)"|'([^']*)'/g, '$1$2'));
  const pairs = [];
  for (const word of words) {
    const last = pairs.at(-1);
    if (word.startsWith('--')) {
      const [key, value = ''] = word.slice(2).split(/=(.*)/s);
      pairs.push([key, value]);
    } else if (last && last[1] === '') last[1] = word;
    else pairs.push([word, '']);
  }
  return pairs;
}

const flagsLine = () => state.further.map((pair) => quoted(wordOf(pair))).join(' ');

// Converts a value in tc's notation to bit/s, ms or a plain number, so that values can be compared.
function sizeOf(value) {
  const [, number, unit] = /^([\d.]+)\s*([a-z]*)/i.exec(value) ?? [, '0', ''];
  return Number(number) * ({ kbit: 1e3, mbit: 1e6, gbit: 1e9, s: 1e3, us: 1e-3 }[unit.toLowerCase()] ?? 1);
}

function stepOf(steps, value) {
  const exact = steps.indexOf(value);
  if (exact >= 0) return exact;
  const above = steps.findIndex((step) => sizeOf(step) >= sizeOf(value));
  return above < 0 ? steps.length - 1 : above;
}
