// The accounts of time that was lost: by cause and device, the most first.
import { byID, element } from './dom.js';
import { duration, whole } from './format.js';
import { bar, describe, legend } from './stages.js';

let shown = '';

export function showLost(view) {
  const now = JSON.stringify(view.lost);
  if (now === shown) return;
  shown = now;
  if (view.lost.length === 0) {
    byID('lost').replaceChildren(element('p', { class: 'caption' }, 'None: nothing took longer than its limit.'));
    return;
  }
  const total = (lost) => lost.stages.reduce((sum, stage) => sum + stage.time, 0);
  const longest = Math.max(...view.lost.map(total));
  byID('lost').replaceChildren(
    element('ol', { class: 'requests' }, ...view.lost.map((lost) => element('li', {},
      element('div', { class: 'request' },
        element('strong', {}, duration(lost.time)),
        element('span', {}, `${lost.title}, ${lost.device || 'an unknown device'}`),
        element('span', { class: 'soft' }, `${whole(lost.slow)} slow`)),
      bar(lost.stages, longest),
      element('div', { class: 'soft small-text' }, describe(lost.stages))))),
    legend(new Set(view.lost.flatMap((lost) => lost.stages.map((stage) => stage.name)))),
    element('p', { class: 'caption' }, 'The time lost is what the work of the port does not explain; bars have the whole time of the slow requests, by stage.'));
}
