// Open incidents as cards: where, how bad, since when, why, and what to do. Those
// that are over are one line each.
import { byID, element, setHidden } from './dom.js';
import { clock, duration, span, whole } from './format.js';

const section = byID('incidents');
// shown are the incidents that the page shows, as text, so that it changes only
// when they do: a card that is being read or selected must not be replaced.
let shown = '';

// showIncidents shows them; onQueues is called with the incident whose queues the
// viewer asks for.
export function showIncidents(view, onQueues) {
  setHidden(section, view.incidents.length === 0);
  const now = JSON.stringify(view.incidents);
  if (now !== shown) {
    shown = now;
    const open = view.incidents.filter((incident) => incident.open);
    const over = view.incidents.filter((incident) => !incident.open);
    section.replaceChildren(...open.map((incident) => card(incident, onQueues)), ...overList(over));
  }
  for (const age of section.querySelectorAll('time[data-since]')) {
    const since = Number(age.dataset.since);
    age.textContent = `${clock(since)}, ${span(view.at - since)} ago`;
  }
}

function card(incident, onQueues) {
  const button = element('button', { type: 'button' }, incident.more ? `Show the first ${incident.queues?.length} queues` : 'Show queues');
  button.addEventListener('click', () => onQueues(incident));
  return element('article', { class: 'incident' },
    element('div', {},
      element('h3', {}, incident.subject),
      element('p', { class: 'happened' }, incident.happened),
      element('p', { class: 'since' }, 'Since ', element('time', { 'data-since': incident.first })),
      element('p', { class: 'cause' },
        element('span', { class: 'label' }, 'Why'), ' ',
        element('strong', {}, incident.title),
        incident.confidence ? element('span', { class: 'confidence' }, ` ${incident.confidence}`) : ''),
      incident.remedy ? element('p', {}, element('span', { class: 'label' }, 'Do'), ' ', incident.remedy) : '',
      element('p', { class: 'figures' },
        `${whole(incident.slow)} slow, ${duration(incident.lost)} lost`,
        incident.queues ? button : '')),
    evidence(incident));
}

function evidence(incident) {
  const parts = [
    ['For', incident.for],
    ['Against', incident.against],
    ['Would tell', incident.missing],
    ['Also possible', incident.others],
  ].filter(([, clauses]) => clauses?.length);
  if (parts.length === 0) return '';
  return element('dl', { class: 'evidence' },
    ...parts.flatMap(([label, clauses]) => [
      element('dt', {}, label),
      element('dd', {}, element('ul', {}, ...clauses.map((clause) => element('li', {}, clause)))),
    ]));
}

function overList(over) {
  if (over.length === 0) return [];
  return [element('details', { class: 'over' },
    element('summary', {}, `${over.length} that ${over.length === 1 ? 'is' : 'are'} over`),
    element('ul', {}, ...over.map((incident) => element('li', {},
      `${clock(incident.first)}–${clock(incident.last)} `,
      element('strong', {}, incident.subject), `: ${incident.happened}. ${incident.title}`,
      incident.confidence ? ` (${incident.confidence})` : ''))))];
}
