// The bundle that swaps parts of pages in place. Without it every form and link works by loading whole pages.
import 'htmx.org/dist/htmx.esm.js';
