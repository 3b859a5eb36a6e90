// Routes: the queues of a process on a device, and those of a device to a peer,
// added up out of the rows of the queue table.
import { inOrder } from './format.js';

// routesOf returns both kinds, those that lost most time first.
export function routesOf(rows) {
  const inner = new Map();
  const outer = new Map();
  for (const row of rows) {
    const process = row.pid === undefined ? row.process : `${row.process} ${row.pid}`;
    add(inner, process, row.device, row).rank ??= row.rank;
    add(outer, row.device, row.peer || 'unknown peer', row);
  }
  return { inner: sorted(inner), outer: sorted(outer) };
}

function add(routes, from, to, row) {
  const key = JSON.stringify([from, to]);
  let route = routes.get(key);
  if (!route) {
    route = { from, to, queues: 0, throughput: 0, slow: 0, lost: 0, p99: 0, crossing: 0 };
    routes.set(key, route);
  }
  route.queues++;
  route.throughput += row.throughput;
  route.slow += row.slow;
  route.lost += row.lost;
  route.p99 = Math.max(route.p99, row.p99);
  route.crossing += row.crossing ? 1 : 0;
  return route;
}

// sorted has routes that send about as much in the order of their names, so that a
// picture that is looked at does not dance.
const sorted = (routes) => [...routes.values()].sort((a, b) => b.lost - a.lost || octave(b) - octave(a)
  || inOrder(a.from, b.from) || inOrder(a.to, b.to));

const octave = (route) => Math.round(Math.log2(route.throughput + 1));
