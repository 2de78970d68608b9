/** AG-UI, protocol 1.0: `HttpAgent` and other clients of it (E3). */
import type { Surface } from '../surface.ts';
import { AgUiFold, LOST_FRAMES } from './fold.ts';

export { readRun } from './request.ts';

export const agUi: Surface = {
  name: 'ag-ui',
  streamHeaders: {},
  fold: (run) => new AgUiFold(run),
  lost: LOST_FRAMES,
  // The client's error has the body, parsed, as its `payload`.
  error: ({ message, code }) => ({
    body: JSON.stringify({ error: { code, message } }),
    contentType: 'application/json; charset=utf-8',
  }),
};
