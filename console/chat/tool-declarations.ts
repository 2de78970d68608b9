/** Client tools as the user writes them, and the results of their calls (C3). Pure. */
import type { CallResult, ToolDeclaration } from '../../src/client/index.ts';

export interface Declared {
  readonly tools: readonly ToolDeclaration[];
  /** Why they cannot be sent. */
  readonly issue?: string;
}

/** Reads `[{"name", "description", "parameters"}]`; the server checks each tool. An empty text has no tools. */
export function declaredTools(text: string): Declared {
  if (text.trim() === '') return { tools: [] };
  try {
    const tools: unknown = JSON.parse(text);
    return Array.isArray(tools) ? { tools } : { tools: [], issue: 'The tools must be a list: [{"name": …}]' };
  } catch (error) {
    return { tools: [], issue: `This is not JSON: ${String(error)}` };
  }
}

/** JSON as it is; everything else as text, also JSON with an integer that would lose digits. Nothing is null. */
export function outputOf(text: string): Extract<CallResult, { output: unknown }> {
  if (text.trim() === '') return { output: null };
  try {
    return {
      output: JSON.parse(text, (_, value: unknown) => {
        if (Number.isInteger(value) && !Number.isSafeInteger(value)) throw new Error('would lose digits');
        return value;
      }),
    };
  } catch {
    return { output: text };
  }
}
