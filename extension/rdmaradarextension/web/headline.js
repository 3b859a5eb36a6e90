// The first thing to read: is something slow, and if nothing can be seen, why not.
import { byID, setClass, setHidden, setText } from './dom.js';
import { bits, count, duration, plural, whole } from './format.js';

// recently is how long ago, in milliseconds, what is slow is still worth a line.
const recently = 60_000;

const title = byID('headline-title');
const text = byID('headline-text');
const impaired = byID('headline-impaired');
const section = byID('headline');

export function showHeadline(view) {
  const [level, first, rest] = headlineOf(view);
  setClass(section, level);
  setText(title, first);
  setText(text, rest);
  setHidden(impaired, view.tracing.phase !== 'impaired');
  setText(impaired, `Not everything can be seen: ${view.tracing.reason}`);
}

// headlineOf returns how bad it is, and what to say in large and in small.
export function headlineOf(view) {
  switch (view.tracing.phase) {
    case 'absent':
      return ['muted', 'No rdma receiver feeds this page',
        'Name the receiver rdma in a pipeline of this collector. The extension alone sees nothing.'];
    case 'starting':
      return ['muted', 'Tracing is starting', 'The programs are being loaded and attached; this takes some seconds.'];
    case 'failed':
      return ['bad', 'Nothing is traced on this node', view.tracing.reason];
  }
  const open = view.incidents.filter((incident) => incident.open);
  if (open.length > 0) {
    return ['bad', open.length === 1 ? 'One thing is wrong' : `${open.length} things are wrong`, paceOf(view)];
  }
  if (view.now.queues === 0) return emptyOf(view);
  const slow = Object.values(view.queues.troubles).filter((trouble) => view.at - trouble.last < recently).length;
  if (slow > 0) {
    return ['warn', `Slow now and then on ${plural(slow, 'queue')}`,
      `Too little for an incident; the queues are at the top of the table. ${paceOf(view)}`];
  }
  return ['good', 'Nothing is slow', paceOf(view)];
}

function paceOf(view) {
  const now = view.now;
  return `${plural(now.queues, 'queue')}, ${count(now.completions)} completions/s, ${bits(now.bytes)}, `
    + `half within ${duration(now.p50)}, 99 % within ${duration(now.p99)}.`;
}

// emptyOf is for a node on which there is nothing to see.
function emptyOf(view) {
  if (view.machine.read && view.machine.devices.length === 0) {
    return ['muted', 'This node has no RDMA device',
      `The kernel lists none in /sys/class/infiniband. The driver of the NIC (such as mlx5_ib or irdma) makes them, rdma_rxe one of software.`];
  }
  const libraries = new Set(view.probes.filter((probe) => probe.library).map((probe) => probe.library)).size;
  const watched = libraries > 0 ? ` ${whole(libraries)} ${libraries === 1 ? 'library of RDMA drivers is' : 'libraries of RDMA drivers are'} watched.` : '';
  return ['muted', 'No RDMA queue is in use',
    `Queues appear here as soon as a process, or a consumer in the kernel, makes one.${watched}`];
}
