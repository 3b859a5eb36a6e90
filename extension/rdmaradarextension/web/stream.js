// The stream of views. While the page is hidden there is none: it would cost the
// node something for nobody.

const retryAfter = 3000;
const staleAfter = 5000;

// follow calls onView with each view, and onState with "connecting", "live", or
// "lost" when views no longer come.
export function follow(onView, onState) {
  let events;
  let retry;
  let last = 0;

  function open() {
    close();
    events = new EventSource('events');
    events.addEventListener('view', (message) => {
      last = Date.now();
      onView(JSON.parse(message.data));
      onState('live');
    });
    events.addEventListener('error', () => {
      onState('lost');
      // The browser gives up where the answer is an error, as after a restart with
      // another token.
      if (events.readyState === EventSource.CLOSED) retry = setTimeout(open, retryAfter);
    });
  }

  function close() {
    clearTimeout(retry);
    events?.close();
    events = undefined;
  }

  document.addEventListener('visibilitychange', () => {
    if (document.hidden) close();
    else if (!events) open();
  });
  setInterval(() => {
    if (events && last && Date.now() - last > staleAfter) onState('lost');
  }, 1000);
  onState('connecting');
  if (!document.hidden) open();
}
