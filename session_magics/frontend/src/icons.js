// The pictures on the buttons, drawn on a grid of 16.

/** @type {Record<string, string>} */
const PATHS = {
  interrupt: '<path d="M5 3.5v9M11 3.5v9"/>',
  stop: '<rect x="4" y="4" width="8" height="8" rx="1.5"/>',
  restart: '<path d="M12.7 9.2A4.9 4.9 0 1 1 11.4 4.4L13 6"/><path d="M13 2.8V6H9.8"/>',
  copy: '<rect x="5.5" y="5.5" width="7.5" height="7.5" rx="1.5"/><path d="M10.5 3H4.5A1.5 1.5 0 0 0 3 4.500v6"/>',
  find: '<circle cx="7" cy="7" r="3.8"/><path d="M10 10l3.200 3.200"/>',
  clear: '<path d="M3 13h10M5.200 10.800 3.600 9.200a1 1 0 0 1 0-1.400l4.700-4.700a1 1 0 0 1 1.400 0l2.700 2.700a1 1 0 0 1 0 1.400l-3.600 3.600z"/>',
  full: '<path d="M8 2.500v11M5.500 5 8 2.500 10.500 5M5.500 11 8 13.500 10.500 11"/>',
  show: '<rect x="2.500" y="3" width="11" height="10" rx="1.500"/><path d="M5.200 6.200 7 8l-1.800 1.800M8.800 10h2"/>',
  remove: '<path d="M3 4.500h10M6.200 4.500V3h3.600v1.500M4.500 4.500l.6 8.500h5.800l.6-8.500M7 7.200v3.300M9 7.200v3.300"/>',
  play: '<path d="M5 3.200v9.600l7.500-4.800z"/>',
  pause: '<path d="M5.500 3.500v9M10.500 3.500v9"/>',
  back: '<path d="M4 3.500v9M12 3.500v9L6 8z"/>',
  forth: '<path d="M12 3.500v9M4 3.500v9L10 8z"/>',
  previous: '<path d="M4 10l4-4 4 4"/>',
  next: '<path d="M4 6l4 4 4-4"/>',
  close: '<path d="M4.500 4.500l7 7M11.500 4.500l-7 7"/>',
};

/** @param {string} name */
export function icon(name) {
  return (
    '<svg viewBox="0 0 16 16" width="16" height="16" fill="none" stroke="currentColor" stroke-width="1.500" ' +
    `stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${PATHS[name]}</svg>`
  );
}
