/** The protocols that have routes. */
import { agUi } from '../../surfaces/ag-ui/index.ts';
import { aiSdk } from '../../surfaces/ai-sdk/index.ts';
import { mcp } from '../../surfaces/mcp/index.ts';
import { openai } from '../../surfaces/openai/index.ts';
import type { Surface, SurfaceName } from '../../surfaces/surface.ts';

export const SURFACES: Readonly<Record<SurfaceName, Surface>> = { 'ai-sdk': aiSdk, openai, 'ag-ui': agUi, mcp };
