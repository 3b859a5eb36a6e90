// The topology: processes, sockets with their PCIe switches, NICs and GPUs, peers,
// and who talks to whom over what.
import { byID, setHidden, shape } from './dom.js';
import { bits, duration, inOrder, plural, whole } from './format.js';
import { routesOf } from './routes.js';
import { rowsOf } from './rows.js';
import { portText, showTables } from './tables.js';

// mostEnds bounds the processes, and the peers, that are drawn.
const mostEnds = 14;
// every is how often, in milliseconds, it is drawn: it seldom changes.
const every = 3000;

const width = 1360;
const rowHeight = 34;
const chip = { width: 236, height: 26 };
const gpuChip = { width: 112, height: 26 };
const left = { x: 10, width: 230 };
const middle = { x: 400, width: 520 };
const right = { x: 1090, width: 250 };

let drawn = 0;

export function showTopology(view) {
  const devices = devicesOf(view);
  setHidden(byID('topology'), devices.length === 0);
  if (devices.length === 0 || Math.abs(view.at - drawn) < every) return;
  drawn = view.at;
  const routes = routesOf(rowsOf(view));
  byID('topology-plot').replaceChildren(picture(view, devices, routes));
  showTables(devices, routes);
}

// devicesOf are those of the machine, and those that queues name: a machine may not
// tell of its devices.
function devicesOf(view) {
  const known = new Set(view.machine.devices.map((device) => device.name));
  const others = view.queues.devices.filter((name) => name && !known.has(name));
  return [...view.machine.devices, ...others.map((name) => ({ name, ports: [] }))];
}

function picture(view, devices, routes) {
  const processes = ends(routes.inner, 'from');
  const peers = ends(routes.outer, 'to');
  const sockets = socketsOf(devices, view.machine.gpus);
  const places = placeSockets(sockets);
  const height = Math.max(places.height, Math.max(processes.labels.length, peers.labels.length) * rowHeight) + 10;
  const processPlaces = placeEnds(processes, left, height);
  const peerPlaces = placeEnds(peers, right, height);
  const inner = lines(routes.inner, 'from', processes);
  const outer = lines(routes.outer, 'to', peers);
  return shape('svg', {
    viewBox: `0 0 ${width} ${height}`, role: 'img', class: 'topology', 'aria-label': inWords(devices, routes),
  },
  ...inner.map((route) => line(processPlaces.get(route.from), places.nics.get(route.to), route, mostOf(inner), true)),
  ...outer.map((route) => line(places.nics.get(route.from), peerPlaces.get(route.to), route, mostOf(outer), false)),
  ...places.shapes, ...endShapes(processPlaces), ...endShapes(peerPlaces));
}

// ends are the names at one side that are drawn, in their order; the others share a
// place, whose name says how many they are.
function ends(routes, side) {
  const all = [...new Set(routes.map((route) => route[side]))];
  const names = all.slice(0, mostEnds).sort(inOrder);
  const rest = all.length > mostEnds ? `${whole(all.length - mostEnds)} more` : undefined;
  return { names, rest, labels: rest ? [...names, rest] : names };
}

// lines are the routes that are drawn: those of ends that share a place are added up.
function lines(routes, side, { names, rest }) {
  const kept = new Set(names);
  const sums = new Map();
  const single = [];
  for (const route of routes) {
    if (kept.has(route[side])) {
      single.push(route);
      continue;
    }
    const key = side === 'to' ? route.from : route.to;
    const sum = sums.get(key) ?? { ...route, queues: 0, throughput: 0, slow: 0, lost: 0, crossing: 0, [side]: rest };
    for (const member of ['queues', 'throughput', 'slow', 'lost', 'crossing']) sum[member] += route[member];
    sums.set(key, sum);
  }
  return [...single, ...sums.values()];
}

const mostOf = (routes) => ({
  lost: Math.max(1, ...routes.map((route) => route.lost)),
  throughput: Math.max(1, ...routes.map((route) => route.throughput)),
});

function placeEnds({ labels }, column, height) {
  const gap = Math.min(rowHeight, height / Math.max(labels.length, 1));
  const top = (height - gap * labels.length) / 2;
  return new Map(labels.map((label, i) => [label, { x: column.x, y: top + gap * (i + 0.5), width: column.width }]));
}

const endShapes = (places) => [...places].map(([label, place]) => box(place, label, 'end'));

// socketsOf puts devices and GPUs into NUMA nodes, and there below PCIe root ports.
function socketsOf(devices, gpus) {
  const sockets = new Map();
  const add = (thing, kind) => {
    const node = thing.node ?? 'unknown';
    if (!sockets.has(node)) sockets.set(node, new Map());
    const groups = sockets.get(node);
    const key = thing.root_port ?? `alone ${thing.pci ?? thing.name}`;
    if (!groups.has(key)) groups.set(key, { gpus: [], nics: [] });
    groups.get(key)[kind].push(thing);
  };
  devices.forEach((device) => add(device, 'nics'));
  gpus.forEach((gpu) => add(gpu, 'gpus'));
  return [...sockets].sort(([a], [b]) => (a < b ? -1 : 1));
}

function placeSockets(sockets) {
  const nics = new Map();
  const shapes = [];
  let y = 5;
  for (const [node, groups] of sockets) {
    const top = y;
    y += 26;
    for (const group of groups.values()) {
      const rows = Math.max(group.nics.length, Math.ceil(group.gpus.length / 2), 1);
      if (group.nics.length + group.gpus.length > 1) {
        shapes.push(shape('rect', { x: middle.x + 8, y: y - 2, width: middle.width - 16, height: rows * rowHeight - 2, rx: 4, class: 'switch' }));
      }
      group.nics.forEach((nic, i) => {
        const place = { x: middle.x + middle.width - chip.width - 20, y: y + rowHeight * i + rowHeight / 2 - 4, width: chip.width };
        nics.set(nic.name, place);
        shapes.push(nicShape(nic, place));
      });
      group.gpus.forEach((gpu, i) => {
        const place = { x: middle.x + 20 + (i % 2) * (gpuChip.width + 10), y: y + rowHeight * Math.floor(i / 2) + rowHeight / 2 - 4, width: gpuChip.width };
        shapes.push(box(place, `GPU ${shortAddress(gpu.pci)}`, 'gpu'));
      });
      y += rows * rowHeight;
    }
    y += 8;
    const title = node === 'unknown' ? 'NUMA node not known' : `NUMA node ${node}`;
    shapes.unshift(
      shape('rect', { x: middle.x, y: top, width: middle.width, height: y - top - 4, rx: 6, class: 'socket' }),
      shape('text', { x: middle.x + 12, y: top + 18, class: 'socket-title' }, title));
    y += 6;
  }
  return { nics, shapes, height: y };
}

function nicShape(nic, place) {
  const down = nic.ports.length > 0 && !nic.ports.some((port) => port.active);
  const rate = nic.ports.reduce((sum, port) => sum + (port.active ? port.rate ?? 0 : 0), 0);
  const parts = [nic.name, down ? 'down' : rate > 0 ? `${Math.round(rate / 1e9)} Gb/s` : '', nic.degraded ? 'PCIe degraded' : ''];
  const facts = [nic.pci, nic.link, ...nic.ports.map(portText)];
  return box(place, parts.filter(Boolean).join(' '), down ? 'nic down' : nic.degraded ? 'nic degraded' : 'nic', facts.filter(Boolean));
}

const shortAddress = (address) => address?.replace(/^0000:/, '') ?? '';

// box has a title of one element: of several a browser shows the first.
function box(place, label, kind, facts = []) {
  return shape('g', { class: `box ${kind}` },
    shape('rect', { x: place.x, y: place.y - chip.height / 2, width: place.width, height: chip.height, rx: 4 }),
    shape('text', { x: place.x + 8, y: place.y + 4.5 }, cut(label, Math.floor((place.width - 14) / 6.8))),
    shape('title', {}, [label, ...facts].join('\n')));
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// line goes from the right side of one place to the left side of another.
function line(from, to, route, most, inner) {
  if (!from || !to) return '';
  const [x1, y1, x2, y2] = [from.x + from.width, from.y, to.x, to.y];
  const bend = (x2 - x1) / 2;
  const weight = 1 + 2.5 * Math.sqrt(route.throughput / most.throughput);
  const heat = route.lost > 0 ? `hot hot-${Math.ceil(3 * route.lost / most.lost)}` : '';
  const crossing = inner && route.crossing > 0 ? 'crossing' : '';
  return shape('path', {
    d: `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`, class: `route ${heat} ${crossing}`, 'stroke-width': weight.toFixed(1),
  }, shape('title', {}, `${route.from} → ${route.to}: ${plural(route.queues, 'queue')}, ${bits(route.throughput)}, ${whole(route.slow)} slow, ${duration(route.lost)} lost`
    + (route.crossing ? `, ${route.crossing} across NUMA nodes` : '')));
}

function inWords(devices, routes) {
  const crossing = routes.inner.reduce((sum, route) => sum + route.crossing, 0);
  const worst = routes.outer[0]?.lost > 0 ? ` Most time was lost from ${routes.outer[0].from} to ${routes.outer[0].to}.` : '';
  return `${plural(devices.length, 'device')}, ${plural(routes.outer.length, 'route')} to peers, ${plural(crossing, 'queue')} polled across NUMA nodes.${worst}`;
}
