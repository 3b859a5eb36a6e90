// The table of queues. It holds as many rows as fit on the screen, whatever the
// number of queues, and fills them anew while it is scrolled.
import { byID, element, setClass, setHidden, setText } from './dom.js';
import { bits, clock, count, duration, hex, plural, span, unknown, whole } from './format.js';
import { filterRows, rowsOf, sortRows } from './rows.js';

const rowHeight = 28;
// margin is how many rows there are above and below those that are seen.
const margin = 6;

// The columns: the member of a row to sort by, the title, what a cell says, its
// class, and what the title means.
const columns = [
  ['process', 'Process', (row) => (row.pid === undefined ? row.process : `${row.process} ${row.pid}`), 'text process', 'name and pid'],
  ['rank', 'Rank', (row) => row.rank ?? unknown, 'rank'],
  ['device', 'Device', (row) => row.device || unknown, 'text device'],
  ['qp', 'QP', (row) => hex(row.qp), 'text mono qp'],
  ['peer', 'Peer', (row) => row.peer || unknown, 'text mono peer'],
  ['depth', 'Depth', depthOf, 'depth', 'requests on the Send Queue: now / peak of the interval / limit'],
  ['rate', 'Rate', (row) => `${count(row.rate)}/s`, 'rate', 'timed completions a second'],
  ['throughput', 'Sent', (row) => bits(row.throughput), 'sent', 'payload of completed requests'],
  ['p50', 'p50', (row) => duration(row.p50), 'time'],
  ['p99', 'p99', (row) => duration(row.p99), 'time'],
  ['p999', 'p99.9', (row) => duration(row.p999), 'time'],
  ['worst', 'Worst', (row) => duration(row.worst), 'time'],
  ['slow', 'Slow', (row) => (row.slow ? whole(row.slow) : unknown), 'slow-count', 'completions over their limit'],
  ['lost', 'Lost', (row) => duration(row.lost), 'lost', 'time that slow requests lost in the present trouble'],
  ['since', 'Since', (row) => (row.since ? clock(row.since) : unknown), 'clock', 'when the present trouble began'],
  ['cause', 'Why', whyOf, 'text why', 'the cause of the last slow requests'],
];

const scroll = byID('queues-scroll');
const table = byID('queues-table');
const filter = byID('filter');
const slowOnly = byID('slow-only');
const countText = byID('queues-count');

let view;
let rows = [];
let chosen = [];
let sort = { column: 'lost', descending: true };
// only are the keys of queues that the viewer asked for by an incident.
let only = null;

const headers = columns.map(([name, title, , kind, meaning]) => {
  const button = element('button', { type: 'button', title: meaning }, title);
  const header = element('th', { scope: 'col', class: kind }, button);
  button.addEventListener('click', () => {
    sort = { column: name, descending: sort.column === name ? !sort.descending : !kind.includes('text') };
    arrange();
  });
  return header;
});
const above = element('tr', { class: 'space', 'aria-hidden': 'true' }, element('td', { colspan: columns.length }));
const below = element('tr', { class: 'space', 'aria-hidden': 'true' }, element('td', { colspan: columns.length }));
const body = element('tbody', {}, above, below);
table.append(element('thead', {}, element('tr', {}, ...headers)), body);

filter.addEventListener('input', () => {
  only = null;
  arrange();
});
slowOnly.addEventListener('change', arrange);
scroll.addEventListener('scroll', () => requestAnimationFrame(fill));
new ResizeObserver(() => fill()).observe(scroll);
// What does not fit can be read in full. To ask each cell whether it does, each second,
// would have the browser lay out the table as often.
body.addEventListener('mouseover', (event) => {
  const cell = event.target.closest('td');
  if (cell) cell.title = cell.scrollWidth > cell.clientWidth ? cell.textContent : '';
});
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target instanceof HTMLInputElement) return;
  event.preventDefault();
  filter.focus();
});

export function showQueues(now) {
  view = now;
  setHidden(byID('queues'), now.queues.qp.length === 0);
  rows = rowsOf(now);
  arrange();
}

// showOnly shows the queues of an incident alone, until something is typed.
export function showOnly(queues) {
  only = new Set(queues.map((queue) => `${queue.pid ?? ''}/${queue.device ?? ''}/${queue.qp}`));
  filter.value = '';
  slowOnly.checked = false;
  arrange();
  scroll.scrollIntoView({ block: 'nearest' });
  scroll.focus({ preventScroll: true });
}

// arrange filters and sorts, and shows what comes of it.
function arrange() {
  if (!view) return;
  chosen = sortRows(filterRows(rows, { text: filter.value, slowOnly: slowOnly.checked, only }), sort.column, sort.descending);
  headers.forEach((header, i) => {
    const sorted = columns[i][0] === sort.column;
    if (sorted) header.setAttribute('aria-sort', sort.descending ? 'descending' : 'ascending');
    else header.removeAttribute('aria-sort');
  });
  table.setAttribute('aria-rowcount', chosen.length + 1);
  setText(byID('queues-text'), captionOf());
  setText(countText, chosen.length === rows.length ? plural(rows.length, 'queue') : `${whole(chosen.length)} of ${plural(rows.length, 'queue')}`);
  fill();
}

// captionOf also says what the column means that is sorted by.
function captionOf() {
  const [, title, , , meaning] = columns.find(([name]) => name === sort.column);
  return `Quantiles, worst and slow are of the last ${span(view.queues.over / 1e6)}, quantiles at most √2 too high. `
    + `Press / to filter. A queue that is not synced is counted and not timed. Sorted by ${title}${meaning ? `: ${meaning}` : ''}.`;
}

// fill puts the rows that can be seen into the table.
function fill() {
  const first = Math.max(0, Math.min(Math.floor(scroll.scrollTop / rowHeight) - margin, chosen.length));
  const wanted = Math.min(chosen.length - first, Math.ceil(scroll.clientHeight / rowHeight) + 2 * margin);
  while (body.children.length - 2 < wanted) below.before(newRow());
  while (body.children.length - 2 > wanted) below.previousElementSibling.remove();
  above.firstElementChild.style.height = `${first * rowHeight}px`;
  below.firstElementChild.style.height = `${(chosen.length - first - wanted) * rowHeight}px`;
  for (let i = 0; i < wanted; i++) fillRow(body.children[i + 1], chosen[first + i], first + i);
}

function newRow() {
  return element('tr', {}, ...columns.map(([, , , kind]) => element('td', { class: kind })));
}

function fillRow(of, row, number) {
  of.setAttribute('aria-rowindex', number + 2);
  setClass(of, classOf(row));
  columns.forEach(([, , say], i) => {
    const cell = of.children[i];
    const text = String(say(row));
    if (cell.textContent !== text) {
      cell.textContent = text;
      if (cell.title) cell.title = text;
    }
  });
}

// classOf marks what is slow now, and what was.
function classOf(row) {
  const trouble = row.last && view.at - row.last < 15_000 ? 'slow' : row.last ? 'was-slow' : '';
  return row.state === 'synced' ? trouble : `${trouble} untimed`;
}

function depthOf(row) {
  return `${row.depth} / ${row.peak} / ${row.limit || unknown}`;
}

function whyOf(row) {
  if (row.stuck > 0) return `${plural(row.stuck, 'send')} stuck: ${row.cause}`;
  if (row.state !== 'synced') return row.cause || `not timed: ${row.state}`;
  return row.cause || (row.crossing ? 'NUMA crossing' : unknown);
}
