// The rows of the queue table: out of the columns of a view, filtered and sorted.
import { hex, processName } from './format.js';

// rowsOf makes an object of each row.
export function rowsOf(view) {
  const table = view.queues;
  const titles = titlesOf(view);
  const nodes = new Map(view.machine.devices.map((device) => [device.name, device.node]));
  return table.qp.map((qp, i) => {
    const process = table.processes[table.process[i]];
    const trouble = table.troubles[i];
    return {
      key: `${process.pid ?? ''}/${table.devices[table.device[i]]}/${qp}`,
      process: processName(process),
      pid: process.pid,
      rank: process.rank,
      service: process.service ?? '',
      job: process.job ?? '',
      device: table.devices[table.device[i]],
      peer: table.peer[i] < 0 ? '' : table.peers[table.peer[i]],
      qp,
      remote: table.remote_qp[i],
      type: table.type[i],
      state: table.state[i],
      depth: table.outstanding[i],
      peak: table.peak[i],
      limit: table.limit[i],
      oldest: table.oldest[i],
      rate: table.rate[i],
      throughput: table.throughput[i],
      p50: table.p50[i],
      p99: table.p99[i],
      p999: table.p999[i],
      worst: table.worst[i],
      slow: table.slow[i],
      lost: trouble?.lost ?? 0,
      since: trouble?.since ?? 0,
      last: trouble?.last ?? 0,
      stuck: trouble?.stuck ?? 0,
      crossing: crosses(table.node[i], nodes.get(table.devices[table.device[i]])),
      cause: trouble ? titles.get(trouble.cause) ?? trouble.cause : '',
    };
  });
}

// crosses reports whether a queue is polled on another NUMA node than its device's.
const crosses = (thread, device) => thread >= 0 && device !== undefined && thread !== device;

// titlesOf are what people call the causes of a view.
export function titlesOf(view) {
  const titles = new Map();
  for (const lost of view.lost) titles.set(lost.cause, lost.title);
  for (const incident of view.incidents) titles.set(incident.cause, incident.title);
  return titles;
}

// whole are the keys of words that are compared whole: "rank:7" does not mean the
// ranks 70 to 79. Other words with colons are addresses.
const whole = /^(pid|rank|job|device):./;

// filterRows keeps the rows that have every word of the text somewhere, as rdmaradar
// top does. With only, a set of keys, it keeps those alone.
export function filterRows(rows, { text = '', slowOnly = false, only = null }) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    if (only && !only.has(row.key)) return false;
    if (slowOnly && row.slow === 0 && row.lost === 0 && row.stuck === 0) return false;
    return words.every((word) => searched(row).includes(whole.test(word) ? `\n${word}\n` : word));
  });
}

// searched is what a filter looks into, in lines.
function searched(row) {
  row.searched ??= `\n${[
    row.process, row.service, row.peer, hex(row.qp), row.qp, hex(row.remote), row.type, row.state, row.cause,
    ...['pid', 'rank', 'job', 'device'].filter((key) => row[key] !== undefined && row[key] !== '').map((key) => `${key}:${row[key]}`),
    row.crossing ? 'numa crossing' : '',
  ].join('\n').toLowerCase()}\n`;
  return row.searched;
}

// sortRows sorts in place. Rows that are equal stay where they are in the order of
// keys, so that a table that is looked at does not dance.
export function sortRows(rows, column, descending) {
  const direction = descending ? -1 : 1;
  return rows.sort((a, b) => direction * compare(a[column], b[column]) || compare(a.key, b.key));
}

// compare puts what is not known last in a descending order.
function compare(a, b) {
  if (a === b) return 0;
  if (a === undefined || a === '') return -1;
  if (b === undefined || b === '') return 1;
  return a < b ? -1 : 1;
}
