// How the node is observed, and what could not be: probes, and the books of the
// tracer, whose sides add up.
import { byID, element, setHidden, setText } from './dom.js';
import { percent, whole } from './format.js';

const modes = {
  site: 'completion sites: nothing runs on an empty poll',
  windows: 'entry and return',
  comparing: 'both, being compared',
  off: 'not observed',
  control: 'control path',
  kernel: 'consumers in the kernel',
};

// states are what the states of a queue mean.
const states = {
  synced: 'synced',
  unsynced: 'unsynced: seen from mid-stream or after a loss, counted and not timed',
  untracked: 'untracked: over the bound, not followed',
};

let shown = '';

export function showObservation(view) {
  setHidden(byID('observation'), view.tracing.phase === 'absent' || view.tracing.phase === 'failed');
  showOverhead(view);
  const now = JSON.stringify([view.probes, view.books]);
  if (now === shown) return;
  shown = now;
  byID('probes').replaceChildren(probeTable(view.probes));
  byID('books').replaceChildren(...books(view.books));
}

// showOverhead says how much of the queues is known, and what knowing it takes.
function showOverhead(view) {
  const facts = [['Queues', queueStates(view)], ['Collector', collectorTime(view.cost)], ['Probes', probeTime(view.probes)]];
  const list = byID('overhead');
  if (list.children.length === 0) list.append(...facts.flatMap(([label]) => [element('dt', {}, label), element('dd', {})]));
  facts.forEach(([, text], i) => setText(list.children[2 * i + 1], text));
}

function queueStates(view) {
  const counts = new Map([['synced', 0]]);
  for (const state of view.queues.state) counts.set(state, (counts.get(state) ?? 0) + 1);
  if (view.books.untracked_queues > 0) counts.set('untracked', view.books.untracked_queues);
  return [...counts].map(([state, n]) => `${whole(n)} ${states[state] ?? state}`).join('; ');
}

function collectorTime(cost) {
  if (!cost.cores) return 'its CPU time is not known yet';
  return `${cost.cores.toFixed(3)} cores, its exporters too; max_agent_cpu_cores bounds what the tracer takes of that`;
}

// probeTime is as of the last collection, like the table below it.
function probeTime(probes) {
  const busiest = probes.filter((probe) => probe.used).reduce((a, b) => (b.paid > (a?.paid ?? 0) ? b : a), undefined);
  const kernel = probes.some((probe) => probe.mode === 'kernel') ? ' What they take of consumers in the kernel is not counted.' : '';
  if (!busiest) return `were not hit in the last interval.${kernel}`;
  const part = busiest.paid < 0.001 ? 'less than 0.1 %' : `up to ${percent(busiest.paid)}`;
  return `took ${part} of a thread's time in the last interval, in ${busiest.provider}; `
    + `max_thread_cpu_ratio bounds it, and what is over it is observed for a part of the time.${kernel}`;
}

function probeTable(probes) {
  if (probes.length === 0) return element('p', { class: 'caption' }, 'No library of an RDMA driver is probed yet. This list is renewed at each collection.');
  const used = [...probes].sort((a, b) => Number(b.used) - Number(a.used));
  return element('table', { class: 'plain' },
    element('caption', {}, 'Probes'),
    element('thead', {}, element('tr', {}, ...['Provider', 'Functions', 'How', 'Observed', 'Library'].map((title) => element('th', { scope: 'col' }, title)))),
    element('tbody', {}, ...used.map((probe) => element('tr', { class: probe.used ? '' : 'untimed' },
      element('td', {}, probe.provider),
      element('td', {}, (probe.functions ?? []).join(', ')),
      element('td', {}, `${modes[probe.mode] ?? probe.mode} (${probe.link})`),
      element('td', { class: 'number' }, probe.used ? percent(probe.observed) : 'unused'),
      element('td', { class: 'mono path', title: probe.library }, probe.library)))));
}

function books(of) {
  const work = [
    ['posted', of.posted], ['delivered', of.delivered], ['retired unsignaled', of.retired], ['refused by the provider', of.undone],
    ['outstanding', of.outstanding], ...reasons('discarded', of.discarded), ...reasons('lost', of.lost),
  ];
  const completions = [
    ['seen', of.seen], ['matched', of.matched], ['receives', of.received], ['of queues that are not synced', of.unsynced],
    ['posted before the probes', of.before_attach], ['duplicate', of.duplicate], ['ambiguous', of.ambiguous], ['unmatched', of.unmatched],
  ];
  const losses = [...reasons('', of.losses), ['queues over the bound', of.untracked_queues]];
  return [
    bookTable('Work requests since the start', work),
    bookTable('Completions since the start', completions),
    bookTable('What could not be followed', losses.filter(([, n]) => n > 0), 'Nothing was lost.'),
  ];
}

function reasons(prefix, counts) {
  return Object.entries(counts).map(([reason, n]) => [`${prefix} ${reason.replaceAll('_', ' ')}`.trim(), n]);
}

function bookTable(title, entries, none) {
  if (entries.length === 0) return element('div', {}, element('h3', {}, title), element('p', { class: 'caption' }, none));
  return element('table', { class: 'plain' },
    element('caption', {}, title),
    element('tbody', {}, ...entries.map(([label, n]) => element('tr', {},
      element('th', { scope: 'row' }, label), element('td', { class: 'number' }, whole(n))))));
}
