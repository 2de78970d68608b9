/** The script of `provider-contract.ts`: each scenario in each provider's format, selected by the model's name. */
import { stringify } from 'yaml';
import { PRESET_NAMES } from '../../../src/llm/providers/presets.ts';

const USAGE = { prompt: 120, completion: 7, cached: 100 };

const SCENARIOS: readonly (readonly [name: string, reply: Record<string, unknown>])[] = [
  ['plain', { text: '<response final="true">Grüße 😀</response>', usage: USAGE, pace: { chars: 5 } }],
  ['think', { reasoning: 'Let me see.', text: '42' }],
  [
    'calls',
    {
      tool_calls: [
        { name: 'search', arguments: { q: 'a "quoted" word' } },
        { name: 'echo', arguments: { n: 1 } },
      ],
    },
  ],
  ['uncounted', { text: 'x', usage: 'none' }],
  ['busy', { status: 429, retry_after: 0, times: 1 }],
  ['busy', { text: 'at last' }],
  ['refused', { status: 400, message: 'no such thing as that' }],
  ['cut', { text: 'half of it', fault: { type: 'cut', after: 7 } }],
  ['error', { text: 'half of it', fault: { type: 'error', after: 7 } }],
  ['garbage', { text: 'half of it', fault: { type: 'garbage', after: 7 } }],
];

export const CONTRACT_SCRIPT = stringify({
  replies: PRESET_NAMES.flatMap((preset) =>
    SCENARIOS.map(([name, reply]) => ({ when: { model: `${preset}/${name}` }, shape: preset, ...reply })),
  ),
});
