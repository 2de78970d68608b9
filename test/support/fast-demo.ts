/** The demo model speaks ten times as fast: most tests wait for its answers. */
import { limits } from '../../src/domain/limits.ts';

Object.assign(limits, { demoDeltaMs: 1 });
