// Where time went, as a bar whose parts have the colours of the stages.
import { element } from './dom.js';
import { duration } from './format.js';

export const meanings = {
  post: 'posting: lock or doorbell',
  queue: 'behind earlier work of its queue',
  submit: 'posting, and behind earlier work',
  device: 'NIC, PCIe, fabric or peer',
  completion: 'after the head of the queue: not told apart',
  poll: 'done, but not polled yet',
};

// bar is as wide as its part of the longest.
export function bar(stages, longest) {
  const total = stages.reduce((sum, stage) => sum + stage.time, 0);
  const made = element('div', { class: 'bar', role: 'img', 'aria-label': describe(stages) });
  made.style.width = `${Math.max(1, (total / Math.max(longest, 1)) * 100)}%`;
  for (const stage of stages) {
    const part = element('span', { class: `stage ${stage.name}`, title: `${stage.name} ${duration(stage.time)}` });
    part.style.flexGrow = String(stage.time);
    made.append(part);
  }
  return element('div', { class: 'track' }, made);
}

// describe is a bar in words, the longest part first.
export function describe(stages) {
  return [...stages].sort((a, b) => b.time - a.time).map((stage) => `${stage.name} ${duration(stage.time)}`).join(', ');
}

// legend explains the stages that occur.
export function legend(names) {
  return element('ul', { class: 'legend' }, ...Object.keys(meanings).filter((name) => names.has(name)).map((name) => element('li', {},
    element('span', { class: `key stage ${name}`, 'aria-hidden': 'true' }), ` ${name}: ${meanings[name]}`)));
}
