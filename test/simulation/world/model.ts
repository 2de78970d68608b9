/** The model: writes the generations of the history, one per call, and outlives the hosts. */
import { EngineError } from '../../../src/domain/errors.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { ChatMessage, ModelDelta, ModelProvider, ModelRequest } from '../../../src/domain/ports/model.ts';
import { readChunk } from '../../../src/llm/providers/chunk.ts';
import { GENERIC } from '../../../src/llm/providers/presets.ts';
import { createCaller } from '../../../src/llm/routing/caller.ts';
import type { Connection } from '../../../src/llm/routing/caller.ts';
import { Endpoint } from '../../../src/llm/routing/endpoints.ts';
import { chunksOf, isOfEndpoint } from '../endpoint.ts';
import type { CutScript, GenerationScript } from '../history.ts';
import type { Fact, ShownMarker, ShownResult } from '../observation.ts';
import { textOf, writtenOf } from '../script.ts';
import { marksIn } from '../seeded.ts';
import { bytesOf, hashOf } from './files.ts';
import { HostGone } from './life.ts';
import type { Life } from './life.ts';
import { markedIn } from './marks.ts';
import { Rows } from './rows.ts';
import type { FactWithoutTime, Stage } from './stage.ts';

export const LAST: GenerationScript = {
  items: [{ type: 'response', final: true, refers: [] }],
  finish: 'stop',
  pieceChars: 1_000,
  gapMs: 0,
  reportsUsage: false,
  calls: null,
  cut: null,
  reason: null,
};

/** The finish of a generation with a reason that is not known: it counts as failed. */
export const UNKNOWN = 'unknown';

/** How long a summary takes. */
const SUMMARY_MS = 40;

const MARKER = /\[(image|file) "([^"]*)", ([\w/]+), (\d+) bytes(?:, artifact (\w+))?\]/g;
const CLIENT_RESULT = /<action_result id="(\w+)" name="client" status="(\w+)"[^>]*>\n([^<]*)\n<\/action_result>/g;
const FILE_TEXT = /<attached_file name="([^"]*)" type="text\/plain">\n([^<]*)\n<\/attached_file>/g;

/** The results of clients in a request. */
export function clientResultsIn(text: string): ShownResult[] {
  return Array.from(text.matchAll(CLIENT_RESULT), ([, token = '', status = '', result = '']) => ({
    token,
    status,
    text: result,
  }));
}

export class ScriptedModel {
  readonly #stage: Stage;
  readonly #rows: Rows;
  /** Calls so far, by session and message. */
  readonly #calls = new Map<string, number>();

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#rows = new Rows(stage.disk);
  }

  /** @param incarnation number of the session that uses it */
  provider(life: Life, incarnation: number): ModelProvider {
    return { name: 'scripted', stream: (request) => this.#stream(life, incarnation, request) };
  }

  async *#stream(life: Life, incarnation: number, sent: ModelRequest): AsyncGenerator<ModelDelta> {
    const { broken } = this.#stage;
    const request = broken.request?.(sent) ?? sent;
    const { agent, messages, signal } = request;
    life.enter();
    // As fetch does: a call that was aborted before it began reaches no provider.
    signal.throwIfAborted();
    if (agent === null) return yield* this.#summarise(life, signal);
    const shown = messages.map(({ content }) => content).join('\n');
    // The run of a retry shows the mark of another message, and a run that has received a message shows two.
    const open = this.#rows.generations;
    const generation = open.find((one) => one.message === markedIn(shown)) ?? open[0] ?? null;
    const message = generation?.message ?? markedIn(shown) ?? 0;
    const key = `${incarnation}/${message}`;
    const call = this.#calls.get(key) ?? 0;
    this.#calls.set(key, call + 1);
    const marks = marksIn(shown);
    const results = clientResultsIn(shown);
    const note = (fact: FactWithoutTime): void => this.#stage.note(fact, incarnation);
    const { durableSeq } = this.#stage.disk;
    const of = generation === null ? {} : { of: { ...generation, durableSeq, variables: this.#rows.variables } };
    note({ type: 'model_called', message, call, marks, results, ...of });
    const files = await this.#filesOf(messages);
    if (files !== null) note({ type: 'files_shown', message, call, ...files });
    const script = this.#stage.history.messages[message]?.generations[call] ?? LAST;
    const { cut, pieceChars, gapMs } = script;
    const delivered = (finish: string): void => note({ type: 'generation_delivered', message, call, finish });
    if (isOfEndpoint(script)) {
      return yield* this.#endpoint(life, script, chunksOf(message, call, script), delivered).stream(request);
    }
    const written = writtenOf(textOf(message, call, script), cut);
    const text = broken.text?.(written) ?? written;
    for (let at = 0; at < text.length; at += pieceChars) {
      await this.#pause(life, gapMs, signal);
      yield { type: 'text', text: text.slice(at, at + pieceChars) };
    }
    const finish = cut === null ? script.finish : await this.#cutOff(life, cut, signal);
    await this.#pause(life, finish === 'silent' ? limits.betweenTokensMs : gapMs, signal);
    delivered(finish);
    const arrived = broken.finish?.(finish) ?? finish;
    if (arrived === 'throws' || arrived === 'silent') throw new EngineError('model_unavailable', 'the model gives up');
    if (script.reportsUsage) {
      const usage = { promptTokens: 100, completionTokens: text.length, cachedTokens: 0, estimated: false };
      yield { type: 'usage', usage };
    }
    yield { type: 'finish', reason: arrived };
  }

  /** @returns how the generation finishes, if its host lives */
  async #cutOff(
    life: Life,
    { cause, pauseMs, keeps }: CutScript,
    signal: AbortSignal,
  ): Promise<'throws' | 'silent' | 'length'> {
    await this.#pause(life, pauseMs, signal);
    if (cause !== 'host') return cause === 'dropped' ? 'throws' : cause;
    life.end('lost during a generation', keeps);
    throw new HostGone();
  }

  /** The endpoint is real up to its chunks. */
  #endpoint(
    life: Life,
    script: GenerationScript,
    chunks: readonly object[],
    delivered: (finish: string) => void,
  ): ModelProvider {
    const { cut, gapMs, reason } = script;
    const sent = chunks.slice(0, cut === null ? -1 : cut.chars % chunks.length);
    const pause = async (ms: number, signal: AbortSignal): Promise<void> => await this.#pause(life, ms, signal);
    const cutOff = async (signal: AbortSignal): Promise<GenerationScript['finish']> =>
      cut === null ? script.finish : await this.#cutOff(life, cut, signal);
    async function* answer(signal: AbortSignal): AsyncGenerator<readonly object[]> {
      for (const chunk of sent) {
        await pause(gapMs, signal);
        yield [chunk];
      }
      const finish = await cutOff(signal);
      // Longer than the endpoint may be silent.
      await pause(finish === 'silent' ? limits.betweenTokensMs + 1 : gapMs, signal);
      const isGivenUp = finish === 'throws' || finish === 'silent';
      // The reason is in the last chunk.
      delivered(isGivenUp || cut !== null || reason === null ? finish : UNKNOWN);
      if (isGivenUp) throw new Error('the connection was lost');
      if (cut !== null) yield [{ choices: [{ index: 0, delta: {}, finish_reason: finish }] }];
      else yield chunks.slice(-1);
    }
    const connection: Connection = {
      secret: null,
      keyAdvice: null,
      open: (_, { signal }) => Promise.resolve(answer(signal)),
      read: readChunk,
    };
    const endpoint = new Endpoint({ name: 'scripted', key: null }, life.clock);
    const { betweenTokensMs } = limits;
    const sight = { takes: GENERIC.attachments, vision: true };
    const options = { defaultModel: 'scripted', clock: life.clock, random: () => 0.5, sight, endpoint };
    return createCaller(connection, { ...options, firstTokenMs: betweenTokensMs, betweenTokensMs });
  }

  /** Without marks of messages: what it covers is in its event. */
  async *#summarise(life: Life, signal: AbortSignal): AsyncGenerator<ModelDelta> {
    await this.#pause(life, SUMMARY_MS, signal);
    yield { type: 'text', text: 'What was said before.' };
    yield { type: 'finish', reason: 'stop' };
  }

  /** Null if there is nothing about files. */
  async #filesOf(
    messages: readonly ChatMessage[],
  ): Promise<Omit<Extract<Fact, { type: 'files_shown' }>, 'at' | 'type' | 'message' | 'call'> | null> {
    const text = messages.map(({ content }) => content).join('\n');
    const shown = Array.from(text.matchAll(/#m(\d+)# please/g), ([, number]) => Number(number));
    const results = text.split(' name="idempotent" status="completed"').length - 1;
    const markers = Array.from(text.matchAll(MARKER), markerOf);
    const texts = Array.from(text.matchAll(FILE_TEXT), ([, name = '', body = '']) => ({
      name,
      hash: hashOf(bytesOf(body)),
    }));
    const attached: { name: string; hash: string | null }[] = [];
    for (const { name, read } of messages.flatMap(({ attachments = [] }) => attachments)) {
      const bytes = await read().catch((fault: unknown) => {
        if (fault instanceof HostGone) throw fault;
        return null;
      });
      attached.push({ name, hash: bytes === null ? null : hashOf(bytes) });
    }
    const isRaw = text.includes(btoa('bytes of the image').slice(0, 20));
    const hasFiles = this.#stage.hasFiles || results + markers.length + texts.length + attached.length > 0;
    return hasFiles ? { messages: shown, results, markers, attached, texts, isRaw } : null;
  }

  /** @throws the signal's reason */
  async #pause(life: Life, ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const cancel = this.#stage.time.after(ms, () => resolve());
    const onAbort = (): void => {
      cancel();
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
    await life.wait(0);
  }
}

function markerOf([, type = '', name = '', mediaType = '', size, artifact = '']: RegExpExecArray): ShownMarker {
  return { type, name, mediaType, size: Number(size), artifact };
}
