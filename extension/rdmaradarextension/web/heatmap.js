// The heat map: how many completions took how long, over time. uPlot draws axes,
// lines and the cursor, the cells are drawn here on its canvas.
import { step } from './cells.js';
import { ramp, read, shade } from './colours.js';
import { Columns, quantile } from './columns.js';
import { byID, element, setHidden, setText } from './dom.js';
import { clock, duration, plural, span, whole } from './format.js';

const ranges = [2, 10, 30];
const height = 250;
// leastWidth is how wide a cell is at the least, in pixels: one slow request in half
// an hour has to be seen.
const leastWidth = 2;
// ribbon is the height of the strip at the top that marks seconds with slow requests.
const ribbon = 6;

const plotArea = byID('latency-plot');
const caption = byID('latency-text');
const readout = byID('latency-cell');
const columns = new Columns();
let minutes = 10;
let view;
let plot;
// cell is what the keys have chosen: the end of a column, and a bucket. null while
// nothing is, as where a mouse points.
let cell = null;
let shades;
let colours;

const buttons = ranges.map((range) => {
  const button = element('button', { type: 'button', 'aria-pressed': String(range === minutes) }, `${range} min`);
  button.addEventListener('click', () => {
    minutes = range;
    buttons.forEach((other, i) => other.setAttribute('aria-pressed', String(ranges[i] === minutes)));
    redraw();
  });
  return button;
});
byID('latency-range').append(...buttons);
new ResizeObserver(() => plot?.setSize({ width: plotArea.clientWidth, height })).observe(plotArea);
plotArea.addEventListener('mousemove', () => { cell = null; });
plotArea.addEventListener('blur', () => {
  cell = null;
  plot?.setCursor({ left: -10, top: -10 });
});
plotArea.addEventListener('keydown', (event) => {
  if (!plot || event.altKey || event.ctrlKey || event.metaKey) return;
  // While the page stands still columns go on to come, which the picture does not have.
  const shown = columns.since(view.at - minutes * 60_000).filter((column) => column.at <= view.at);
  const next = step(cell, event.key, shown, buckets());
  if (!next) return;
  event.preventDefault();
  cell = next;
  pointAt(cell);
});

// keep takes the columns of a view, also while the page stands still.
export function keepColumns(now) {
  columns.add(now.heatmap, now.at);
}

export function showHeatmap(now) {
  view = now;
  setHidden(byID('latency'), columns.all.length === 0);
  if (columns.all.length === 0) return;
  if (!plot) build();
  redraw();
}

// retheme draws anew in the colours of another theme.
export function retheme() {
  if (!plot) return;
  plot.destroy();
  build();
  redraw();
}

function build() {
  shades = ramp();
  colours = { text: read('--soft'), grid: read('--grid'), p50: read('--line-p50'), p99: read('--line-p99'), bad: read('--bad') };
  const axis = { stroke: colours.text, space: 60, grid: { stroke: colours.grid, width: 1 }, ticks: { show: false }, font: '12px system-ui' };
  plot = new uPlot({
    width: plotArea.clientWidth,
    height,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { show: false } },
    scales: {
      x: { range: () => [from() / 1000, view.at / 1000] },
      y: { distr: 3, range: () => yRange() },
    },
    axes: [
      { ...axis, size: 30, values: (_, seconds, index, space, step) => seconds.map((second) => clock(second * 1000).slice(0, step < 60 ? 8 : 5)) },
      { ...axis, size: 66, splits: (_, index, from, to) => decades(from, to), filter: (_, values) => values, values: (_, values) => values.map(duration) },
    ],
    series: [
      {},
      { stroke: colours.p50, width: 1, points: { show: false } },
      { stroke: colours.p99, width: 1, points: { show: false } },
    ],
    hooks: { drawAxes: [drawCells], draw: [drawMarks], setCursor: [describe] },
  }, [[], [], []], plotArea);
}

function redraw() {
  if (!plot || !view) return;
  const shown = columns.since(view.at - minutes * 60_000);
  // At once, not when this is over: where a cell is then is where it is pointed at.
  plot.batch(() => plot.setData([
    shown.map((column) => (column.at - column.span / 2) / 1000),
    shown.map((column) => quantile(column, columns.edges, 0.5)),
    shown.map((column) => quantile(column, columns.edges, 0.99)),
  ]));
  setText(caption, summary(shown));
  // The cell that the keys chose stays the same while the picture moves on.
  if (cell && shown.some((column) => column.at === cell.at)) pointAt(cell);
  else cell = null;
}

// from is where the picture begins: not long before anything is known, but a minute
// ago at the latest.
function from() {
  const first = columns.all[0].at - columns.all[0].span;
  return Math.min(Math.max(view.at - minutes * 60_000, first - 5000), view.at - 60_000);
}

// yRange has all that completed in the time that is kept, so that it seldom changes.
function yRange() {
  const [first, last] = buckets();
  if (first > last) return [1e3, 1e6];
  return [columns.lower(first) / 1.2, columns.edges[last] * 2];
}

// buckets are the first and the last that have anything; the first is the larger one
// where none has.
function buckets() {
  let first = columns.edges.length - 1;
  let last = 0;
  for (const column of columns.all) {
    if (column.counts.length === 0) continue;
    first = Math.min(first, column.first);
    last = Math.max(last, column.first + column.counts.length - 1);
  }
  return [first, last];
}

// decades are the powers of ten between two durations, with twice and five times
// each where there would be few.
function decades(from, to) {
  const steps = to / from > 1000 ? [1] : [1, 2, 5];
  const all = [];
  for (let ns = 10 ** Math.floor(Math.log10(from)); ns <= to; ns *= 10) {
    all.push(...steps.map((step) => step * ns).filter((at) => at >= from && at <= to));
  }
  return all;
}

function drawCells(u) {
  const shown = columns.since(view.at - minutes * 60_000);
  const rates = shown.map((column) => column.counts.map((n) => n * 1000 / Math.max(column.span, 1)));
  const most = Math.max(...rates.map((counts) => Math.max(0, ...counts)), 1);
  const ctx = u.ctx;
  ctx.save();
  ctx.beginPath();
  ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  ctx.clip();
  shown.forEach((column, at) => {
    const left = Math.round(u.valToPos((column.at - column.span) / 1000, 'x', true));
    const width = Math.max(leastWidth, Math.round(u.valToPos(column.at / 1000, 'x', true)) - left);
    column.counts.forEach((n, i) => {
      if (n === 0) return;
      const bucket = column.first + i;
      const top = Math.round(u.valToPos(columns.edges[bucket], 'y', true));
      const bottom = Math.round(u.valToPos(columns.lower(bucket), 'y', true));
      ctx.fillStyle = shade(shades, Math.max(rates[at][i], 1), most);
      ctx.fillRect(left, top, width, Math.max(bottom - top, 2));
    });
  });
  ctx.restore();
}

// drawMarks marks the seconds in which something was slow, and when incidents began.
function drawMarks(u) {
  const ctx = u.ctx;
  ctx.save();
  ctx.beginPath();
  ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  ctx.clip();
  ctx.fillStyle = colours.bad;
  for (const column of columns.since(view.at - minutes * 60_000)) {
    if (!column.slow) continue;
    const left = Math.round(u.valToPos((column.at - column.span) / 1000, 'x', true));
    const right = Math.round(u.valToPos(column.at / 1000, 'x', true));
    ctx.fillRect(left, u.bbox.top, Math.max(right - left, leastWidth), ribbon);
  }
  ctx.strokeStyle = colours.bad;
  ctx.setLineDash([5, 4]);
  for (const incident of view.incidents) {
    if (!incident.open) continue;
    const x = Math.round(u.valToPos(incident.first / 1000, 'x', true)) + 0.5;
    ctx.beginPath();
    ctx.moveTo(x, u.bbox.top);
    ctx.lineTo(x, u.bbox.top + u.bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

// pointAt puts the cursor into the middle of a cell.
function pointAt({ at, bucket }) {
  const column = columns.all.find((one) => one.at === at);
  plot.setCursor({
    left: plot.valToPos((column.at - column.span / 2) / 1000, 'x'),
    top: plot.valToPos(Math.sqrt(columns.lower(bucket) * columns.edges[bucket]), 'y'),
  });
}

// describe says what is below the cursor.
function describe(u) {
  const { left, top } = u.cursor;
  if (left < 0 || !view) return setText(readout, '');
  const moment = u.posToVal(left, 'x') * 1000;
  const ns = u.posToVal(top, 'y');
  const column = columns.all.find((one) => moment > one.at - one.span && moment <= one.at);
  const bucket = columns.edges.findIndex((edge) => ns <= edge);
  if (!column || bucket < 0) return setText(readout, `${clock(moment)}: nothing is known`);
  const n = column.counts[bucket - column.first] ?? 0;
  const slow = column.slow ? `, ${whole(column.slow)} slow in this second` : '';
  setText(readout, `${clock(column.at)}, ${duration(columns.lower(bucket))} to ${duration(columns.edges[bucket])}: ${plural(n, 'completion')}${slow}`);
}

// summary is the picture in words.
function summary(shown) {
  let worst;
  let slow = 0;
  for (const column of shown) {
    slow += column.slow ?? 0;
    const edge = column.counts.length > 0 ? columns.edges[column.first + column.counts.length - 1] : 0;
    if (edge > (worst?.edge ?? 0)) worst = { edge, at: column.at };
  }
  if (!worst) return `Nothing completed in the last ${minutes} min.`;
  const first = shown[0].at - shown[0].span;
  return `Last ${span(view.at - first)}: the longest took up to ${duration(worst.edge)}, at ${clock(worst.at)}. ${slow > 0 ? `${whole(slow)} slow: red above.` : 'None was slow.'} `
    + 'Lines are p50 and p99, the brighter or darker a cell the more completions. Dashed: an open incident began.';
}
