// The theme: that of the system unless the viewer chose another one.
import { byID, setText } from './dom.js';

const themes = ['system', 'light', 'dark'];
const key = 'rdma-radar-theme';

// themeButton goes round the themes; changed is called when colours are others.
export function themeButton(changed) {
  const button = byID('theme');
  let chosen = stored();

  function apply() {
    if (chosen === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    setText(button, `Theme: ${chosen}`);
    changed();
  }

  button.addEventListener('click', () => {
    chosen = themes[(themes.indexOf(chosen) + 1) % themes.length];
    try {
      localStorage.setItem(key, chosen);
    } catch {
      // Without storage it lasts as long as the page.
    }
    apply();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', changed);
  apply();
}

function stored() {
  try {
    const value = localStorage.getItem(key);
    return themes.includes(value) ? value : 'system';
  } catch {
    return 'system';
  }
}
