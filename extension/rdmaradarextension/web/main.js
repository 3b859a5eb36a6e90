// The page: views come from the stream, and each part shows its own of them.
import { byID, setClass, setHidden, setText } from './dom.js';
import { clock } from './format.js';
import { keepColumns, retheme, showHeatmap } from './heatmap.js';
import { showHeadline } from './headline.js';
import { showIncidents } from './incidents.js';
import { showLost } from './lost.js';
import { showObservation } from './observation.js';
import { showPace } from './pace.js';
import { showOnly, showQueues } from './queues.js';
import { showSlowest } from './slowest.js';
import { follow } from './stream.js';
import { themeButton } from './theme.js';
import { showTopology } from './topology.js';

const pause = byID('pause');
let paused = false;
let latest;

function show(view) {
  setText(byID('node'), [view.node.host, view.node.version].filter(Boolean).join(' · '));
  document.title = titleOf(view);
  showHeadline(view);
  showIncidents(view, (incident) => showOnly(incident.queues));
  showPace(view);
  showHeatmap(view);
  showQueues(view);
  setHidden(byID('details'), view.slowest.length === 0 && view.lost.length === 0);
  showSlowest(view);
  showLost(view);
  showTopology(view);
  showObservation(view);
}

// titleOf is for a tab that is in the background.
function titleOf(view) {
  const open = view.incidents.filter((incident) => incident.open).length;
  const host = view.node.host ? ` ${view.node.host}` : '';
  return open > 0 ? `(${open}) RDMA radar${host}` : `RDMA radar${host}`;
}

function onView(view) {
  latest = view;
  keepColumns(view);
  if (paused) return;
  // The browser's tools tell how long the last view took. Those before are forgotten:
  // a page may be open for days.
  performance.clearMeasures();
  performance.clearMarks();
  performance.mark('begin');
  show(view);
  performance.measure('view', 'begin');
}

// onState says how things stand with the connection. The clock is apart from it, so
// that a screen reader does not read it out each second.
function onState(state) {
  const texts = {
    connecting: 'Connecting…',
    live: paused ? 'Paused' : 'Live',
    lost: latest ? 'Connection lost: this is old' : 'No connection to the collector; trying again',
  };
  setClass(byID('connection'), state === 'live' && paused ? 'paused' : state);
  setText(byID('connection'), texts[state]);
  if (latest && !paused) setText(byID('clock'), clock(latest.at));
  const old = state === 'lost' && latest;
  setHidden(byID('old'), !old);
  if (old) setText(byID('old'), `What is below is old, of ${clock(latest.at)}: the connection to the collector is lost. The page goes on trying.`);
}

pause.addEventListener('click', () => {
  paused = !paused;
  pause.setAttribute('aria-pressed', String(paused));
  setText(pause, paused ? 'Resume' : 'Pause');
  if (!latest) return;
  onState('live');
  if (!paused) show(latest);
});

themeButton(retheme);
follow(onView, onState);
