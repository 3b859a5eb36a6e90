// The figures of the node at the moment, in one line.
import { byID, element, setHidden, setText } from './dom.js';
import { bits, count, duration, unknown, whole } from './format.js';

const list = byID('pace');

const figures = [
  ['Queues', (view) => whole(view.now.queues)],
  ['Completions/s', (view) => count(view.now.completions)],
  ['Sent', (view) => bits(view.now.bytes)],
  ['p50', (view) => duration(view.now.p50)],
  ['p99', (view) => duration(view.now.p99)],
  ['Slow this second', (view) => whole(view.now.slow)],
  ['Lost in 15 min', (view) => duration(view.lost.reduce((sum, lost) => sum + lost.time, 0))],
  ['Collector CPU', (view) => (view.cost.cores ? `${view.cost.cores.toFixed(3)} cores` : unknown)],
];

const values = figures.map(([label]) => {
  const value = element('dd', {});
  list.append(element('div', {}, element('dt', {}, label), value));
  return value;
});

export function showPace(view) {
  setHidden(list, view.now.queues === 0 && view.heatmap.columns.length === 0);
  figures.forEach(([, say], i) => setText(values[i], say(view)));
}
