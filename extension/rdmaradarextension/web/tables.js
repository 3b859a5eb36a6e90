// Tables below the topology: the first routes, and for who asks what the picture tells
// only where a mouse points.
import { byID, element } from './dom.js';
import { bits, duration, unknown, whole } from './format.js';

// mostRoutes are the rows of the table that is always there, mostInAll those of each of
// the others.
const mostRoutes = 10;
const mostInAll = 100;

const all = byID('topology-all');
let latest;

all.addEventListener('toggle', showAll);

export function showTables(devices, routes) {
  latest = { devices, routes };
  byID('routes').replaceChildren(routeTable(routes.outer, 'Routes', mostRoutes));
  showAll();
}

function showAll() {
  if (!all.open || !latest) return;
  byID('topology-tables').replaceChildren(deviceTable(latest.devices),
    routeTable(latest.routes.inner, 'From processes', mostInAll, true), routeTable(latest.routes.outer, 'To peers', mostInAll));
}

// portText is a port in words.
export const portText = (port) => ['port', port.number, port.state, port.rate ? `${Math.round(port.rate / 1e9)} Gb/s` : '', port.netdev]
  .filter(Boolean).join(' ');

// routeTable has the first routes; those from processes may be polled across nodes.
function routeTable(routes, title, most, crossing = false) {
  if (routes.length === 0) return '';
  const columns = [
    ['From', (route) => route.from, ''], ['To', (route) => route.to, crossing ? '' : 'mono'],
    ['Queues', (route) => whole(route.queues)], ['Sent', (route) => bits(route.throughput)], ['p99 at most', (route) => duration(route.p99)],
    ['Slow', (route) => whole(route.slow)], ['Lost', (route) => duration(route.lost)],
    ...(crossing ? [['Polled across NUMA nodes', (route) => whole(route.crossing)]] : []),
  ];
  return plainTable(routes.length > most ? `${title}: the ${most} that lost the most time, or sent the most, of ${whole(routes.length)}` : title,
    columns, routes.slice(0, most), (route) => (route.lost > 0 ? 'lost' : ''));
}

function deviceTable(devices) {
  const columns = [
    ['Device', (nic) => nic.name, ''], ['NUMA node', (nic) => nic.node ?? unknown], ['PCIe address', (nic) => nic.pci ?? unknown, 'mono'],
    ['PCIe link', (nic) => `${nic.link ?? unknown}${nic.degraded ? ', degraded' : ''}`, ''],
    ['Ports', (nic) => nic.ports.map(portText).join('; ') || unknown, ''],
  ];
  return plainTable(devices.length > mostInAll ? `The first ${mostInAll} of ${whole(devices.length)} devices` : 'Devices',
    columns, devices.slice(0, mostInAll), (nic) => (nic.degraded ? 'degraded' : ''));
}

// plainTable has a row of each thing. A column is its title, what a cell says, and its
// class, without which it has numbers.
function plainTable(caption, columns, things, classOf) {
  return element('table', { class: 'plain' },
    element('caption', {}, caption),
    element('thead', {}, element('tr', {}, ...columns.map(([title, , kind = 'number']) => element('th', { scope: 'col', class: kind }, title)))),
    element('tbody', {}, ...things.map((thing) => element('tr', { class: classOf(thing) },
      ...columns.map(([, say, kind = 'number']) => element('td', { class: kind }, String(say(thing))))))));
}
