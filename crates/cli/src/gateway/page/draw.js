// Draws on canvases: queues packet by packet, and curves.

const colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['data', 'ack', 'other', 'text', 'muted', 'line', 'card']) colours[name] = style.getPropertyValue('--' + name).trim();
}

// Returns an empty canvas with the screen's resolution.
function surface(canvas) {
  const [width, height, scale] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio || 1];
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
  }
  const context = canvas.getContext('2d');
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return [context, width, height];
}

const KINDS = ['ack', 'data', 'other'];

// Draws a packet in a cell: data fills it, an ACK is a dot, a call's packet a diamond. A packet is a number: its length
// in bytes in the lower 14 bits, its kind in the upper 2.
function mark(context, packet, x, y, width, height) {
  const kind = KINDS[(packet >> 14) & 3] ?? 'other';
  context.fillStyle = colours[kind];
  const [cx, cy] = [x + width / 2, y + height / 2];
  context.beginPath();
  if (kind === 'data') {
    const gap = Math.min(1.5, width * 0.18);
    context.roundRect(x + gap / 2, y + 1, width - gap, height - 2, Math.min(2, width / 4));
  } else if (kind === 'ack') {
    context.arc(cx, cy, Math.max(1.3, Math.min(width * 0.44, height * 0.26)), 0, 7);
  } else {
    const r = Math.max(1.8, Math.min(width * 0.62, height * 0.34));
    context.moveTo(cx, cy - r); context.lineTo(cx + r, cy); context.lineTo(cx, cy + r); context.lineTo(cx - r, cy);
  }
  context.fill();
}

const LINK = 28; // width of the box at the left, which shows the packet on the link

// Returns the number of rows and the size of a cell, so that `most` packets fit.
function cells(most, width, height) {
  for (let rows = 1; ; rows++) {
    const cell = Math.min(9, width / Math.ceil(most / rows));
    const rowHeight = Math.min(30, height / rows);
    if (cell >= Math.min(6, rowHeight * 0.5) || rowHeight < 9) return { rows, cell: Math.max(cell, 3), rowHeight };
  }
}

function drawQueue(canvas, queue, most) {
  const [context, width, height] = surface(canvas);
  const pad = 6, inner = height - 2 * pad;
  const { rows, cell, rowHeight } = cells(Math.max(most, 24), width - LINK - 3 * pad, inner);
  const perRow = Math.max(1, Math.floor((width - LINK - 3 * pad + 0.5) / cell));
  const top = (height - rows * rowHeight) / 2;
  const middle = height / 2;
  context.strokeStyle = colours.muted;
  context.lineWidth = 1.5;
  context.beginPath();
  // An arrow to the left: packets leave the house.
  context.moveTo(pad + 4, middle - 4); context.lineTo(pad, middle); context.lineTo(pad + 4, middle + 4);
  context.moveTo(pad, middle); context.lineTo(pad + 9, middle);
  context.roundRect(pad + 9, middle - 14, 17, 28, 4);
  context.stroke();
  if (queue.sent) mark(context, queue.sent, pad + 12, middle - 10, 11, 20);
  const room = Math.min(queue.packets.length, rows * perRow);
  for (let index = 0; index < room; index++) {
    const [row, column] = [Math.floor(index / perRow), index % perRow];
    mark(context, queue.packets[index], LINK + 2 * pad + column * cell, top + row * rowHeight, cell, rowHeight - (rows > 1 ? 2 : 0));
  }
  if (queue.total > room) {
    const label = `+${queue.total - room}`;
    context.font = '600 11px system-ui, sans-serif';
    context.textAlign = 'right';
    context.fillStyle = colours.card;
    context.fillRect(width - context.measureText(label).width - 10, height - 16, 200, 16);
    context.fillStyle = colours.muted;
    context.fillText(label, width - 5, height - 5);
  }
}

// Draws the grid. Returns the functions that map a curve's times and values to pixels.
function axes(canvas, duration, max, label) {
  const [context, width, height] = surface(canvas);
  const [top, bottom] = [3, height - 2];
  const x = (seconds) => (seconds / duration) * width;
  const y = (value) => bottom - (Math.min(value, max) / max) * (bottom - top);
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.beginPath();
  for (const part of [0, 0.5, 1]) {
    const at = Math.round(y(part * max)) + 0.5;
    context.moveTo(0, at); context.lineTo(width, at);
  }
  context.stroke();
  context.fillStyle = colours.muted;
  context.font = '11px system-ui, sans-serif';
  context.textAlign = 'right';
  const caption = () => { context.fillStyle = colours.muted; context.fillText(label, width - 3, top + 12); };
  return { context, x, y, caption };
}

// Draws the share of the link that data uses and, above it, the share of all other packets.
function drawUse(canvas, run, duration, all, data) {
  const { context, x, y } = axes(canvas, duration, 1, '');
  const interval = run.head?.sample ?? 0.2;
  const area = (colour, low, high) => {
    if (!run.samples.length) return;
    context.fillStyle = colour;
    context.beginPath();
    run.samples.forEach((sample, index) => {
      context.lineTo(x(index * interval), y(high(sample)));
      context.lineTo(x((index + 1) * interval), y(high(sample)));
    });
    for (let index = run.samples.length - 1; index >= 0; index--) {
      context.lineTo(x((index + 1) * interval), y(low(run.samples[index])));
      context.lineTo(x(index * interval), y(low(run.samples[index])));
    }
    context.fill();
  };
  area(colours.data, () => 0, (sample) => sample[data]);
  area(colours.ack, (sample) => sample[data], (sample) => sample[all]);
}

function drawWaits(canvas, run, duration, max) {
  const { context, x, y, caption } = axes(canvas, duration, max, msText(max));
  const interval = run.head?.sample ?? 0.2;
  const line = (index, colour, dash) => {
    context.strokeStyle = colour;
    context.lineWidth = 1.6;
    context.setLineDash(dash);
    context.beginPath();
    run.samples.forEach((sample, at) => context.lineTo(x((at + 0.5) * interval), y(sample[index])));
    context.stroke();
    context.setLineDash([]);
  };
  line(4, colours.ack, []);
  line(6, colours.other, [4, 3]);
  caption();
}

const msText = (ms) => (ms < 1 ? `${ms.toFixed(1)} ms` : ms < 10000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(0)} s`);

// Returns the smallest round number that is not below a value.
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)));
  return [1, 1.5, 2, 3, 5, 7.5, 10].map((step) => step * power).find((step) => step >= value * 0.999);
}
