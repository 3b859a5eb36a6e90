// How the node is observed, and what could not be: probes, and the books of the
// tracer, whose sides add up.
import { byID, element, setHidden } from './dom.js';
import { percent, whole } from './format.js';

const modes = {
  site: 'completion sites: nothing runs on an empty poll',
  windows: 'entry and return',
  comparing: 'both, being compared',
  off: 'not observed',
  control: 'control path',
  kernel: 'consumers in the kernel',
};

let shown = '';

export function showObservation(view) {
  setHidden(byID('observation'), view.tracing.phase === 'absent' || view.tracing.phase === 'failed');
  const now = JSON.stringify([view.probes, view.books]);
  if (now === shown) return;
  shown = now;
  byID('probes').replaceChildren(probeTable(view.probes));
  byID('books').replaceChildren(...books(view.books));
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
