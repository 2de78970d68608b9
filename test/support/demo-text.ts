/** The demo model's text of one generation, without the stream. */
import type { ModelRequest } from '../../src/domain/ports/model.ts';
import { passages } from '../../src/llm/demo/demo.ts';

export function demoText(request: Pick<ModelRequest, 'messages' | 'agent'>): string {
  return passages(request).join('');
}
