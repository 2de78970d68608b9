/** The contract of every provider preset, for any streaming format: runs in Node and in workerd. */
import { describe, expect, test } from 'vitest';
import { EngineError } from '../../../src/domain/errors.ts';
import type { Clock } from '../../../src/domain/ports/clock.ts';
import type { ModelDelta, ModelProvider } from '../../../src/domain/ports/model.ts';
import { PRESET_NAMES } from '../../../src/llm/providers/presets.ts';
import { createModel } from '../../../src/llm/routing/select.ts';
import { createToolCallReader } from '../../../src/protocol/native/tool-calls.ts';
import { modelRequest } from '../model-request.ts';

const clock: Clock = {
  now: () => Date.now(),
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

interface Read {
  readonly deltas: readonly ModelDelta[];
  readonly fault: EngineError | null;
}

async function ask(provider: ModelProvider): Promise<Read> {
  const deltas: ModelDelta[] = [];
  try {
    for await (const delta of provider.stream(modelRequest())) deltas.push(delta);
    return { deltas, fault: null };
  } catch (fault) {
    if (!(fault instanceof EngineError)) throw fault;
    return { deltas, fault };
  }
}

function joined(deltas: readonly ModelDelta[], type: 'text' | 'reasoning'): string {
  return deltas.map((delta) => (delta.type === type ? delta.text : '')).join('');
}

/** @param baseUrl URL of a server that runs `contract-script.ts` */
export function providerContract(baseUrl: () => string): void {
  describe.each(PRESET_NAMES)('the preset %s', (preset) => {
    const scenario = async (name: string): Promise<Read> => {
      const config = { provider: preset, baseUrl: baseUrl(), apiKey: 'sk-contract', model: `${preset}/${name}` };
      return await ask(createModel(config, { clock, random: () => 0 }).provider);
    };

    test('[L1] the text arrives unchanged, then the usage, then the finish reason', async () => {
      const { deltas, fault } = await scenario('plain');
      expect(fault).toBeNull();
      expect(joined(deltas, 'text')).toBe('<response final="true">Grüße 😀</response>');
      expect(deltas.slice(-2)).toEqual([
        {
          type: 'usage',
          usage: {
            promptTokens: 120,
            completionTokens: 7,
            cachedTokens: preset === 'anthropic' ? 0 : 100,
            estimated: false,
            model: `${preset}/plain`,
          },
        },
        { type: 'finish', reason: 'stop' },
      ]);
    });

    test('[P9] reasoning arrives as reasoning, separate from the text', async () => {
      const { deltas } = await scenario('think');
      expect(joined(deltas, 'reasoning')).toBe('Let me see.');
      expect(joined(deltas, 'text')).toBe('42');
    });

    test('[P17] native calls become actions, each exactly once with its arguments', async () => {
      const { deltas } = await scenario('calls');
      const reader = createToolCallReader({
        json: 'repair',
        numbering: { ordinal: 0, autoId: 1 },
        unsafe: () => false,
        typeOf: () => 'tool',
      });
      for (const delta of deltas) if (delta.type === 'tool_call') reader.feed(delta);
      reader.end(true);
      expect(reader.calls.map(({ name, arguments: args }) => [name, JSON.parse(args)])).toEqual([
        ['search', { q: 'a "quoted" word' }],
        ['echo', { n: 1 }],
      ]);
      expect(['stop', 'tool_calls']).toContain(lastReason(deltas));
    });

    test('[L6] without reported usage, the tokens are estimated and marked', async () => {
      const { deltas } = await scenario('uncounted');
      expect(deltas.find(({ type }) => type === 'usage')).toMatchObject({ usage: { estimated: true } });
    });

    test('[L2] too many requests are retried before the first token', async () => {
      const { deltas, fault } = await scenario('busy');
      expect(fault).toBeNull();
      expect(joined(deltas, 'text')).toBe('at last');
    });

    test('[L2] a refusal is reported in the provider’s words and not retried', async () => {
      const { fault } = await scenario('refused');
      expect(fault?.code).toBe('model_rejected');
      expect(fault?.message).toContain('no such thing as that');
    });

    test.each(['cut', 'error', 'garbage'])(
      '[P15] a stream that breaks off after its first text (%s) throws',
      async (how) => {
        const { deltas, fault } = await scenario(how);
        expect(fault?.code).toBe('model_unavailable');
        expect(joined(deltas, 'text')).toBe('half of');
        expect(deltas.at(-1)).toMatchObject({ type: 'usage', usage: { estimated: true } });
      },
    );
  });
}

function lastReason(deltas: readonly ModelDelta[]): string {
  const last = deltas.at(-1);
  return last?.type === 'finish' ? last.reason : '';
}
