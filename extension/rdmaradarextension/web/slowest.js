// The slowest requests with the stages of each: for one cause of one queue no more
// than a few, so that there is room for others.
import { byID, element } from './dom.js';
import { clock, duration, hex, processName, size } from './format.js';
import { titlesOf } from './rows.js';
import { bar, describe, legend } from './stages.js';

const most = 10;
const mostAlike = 3;
let shown = '';

export function showSlowest(view) {
  const requests = choose(view.slowest);
  const now = JSON.stringify(requests);
  if (now === shown) return;
  shown = now;
  if (requests.length === 0) {
    byID('slowest').replaceChildren(element('p', { class: 'caption' }, 'None.'));
    return;
  }
  const titles = titlesOf(view);
  const longest = Math.max(...requests.map((request) => request.duration));
  byID('slowest').replaceChildren(
    element('ol', { class: 'requests' }, ...requests.map((request) => row(request, longest, titles))),
    legend(new Set(requests.flatMap((request) => request.stages.map((stage) => stage.name)))));
}

function choose(slowest) {
  const alike = new Map();
  return slowest.filter(({ queue, cause }) => {
    const key = `${queue.pid}/${queue.device}/${queue.qp}/${cause}`;
    alike.set(key, (alike.get(key) ?? 0) + 1);
    return alike.get(key) <= mostAlike;
  }).slice(0, most);
}

function row(request, longest, titles) {
  const where = `${hex(request.queue.qp)} on ${request.queue.device || 'an unknown device'}`;
  const who = `${processName(request.process)}${request.process.rank === undefined ? '' : `, rank ${request.process.rank}`}`;
  return element('li', {},
    element('div', { class: 'request' },
      element('strong', {}, duration(request.duration)),
      element('span', {}, `${where}, ${who}`),
      element('span', { class: 'soft' }, `${request.operation}, ${size(request.bytes)}, ${clock(request.at)}`)),
    bar(request.stages, longest),
    element('div', { class: 'soft small-text' },
      request.status ? element('span', { class: 'tag' }, request.status) : '',
      request.locality === 'remote' ? element('span', { class: 'tag', title: 'the poller ran on another NUMA node than the device\'s' }, 'NUMA crossing') : '',
      `${describe(request.stages)} · ${titles.get(request.cause) ?? request.cause}`));
}
