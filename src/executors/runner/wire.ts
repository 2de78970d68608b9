/** Jobs and relic calls in the wire format of the runner's API (R1, R5). */
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import type { ImageBuild } from '../../domain/manifests/program.ts';
import type { RelicAnswer, RelicCall, RunnerJob } from '../../domain/ports/runner.ts';
import { wireWorkspace } from './file-transfer.ts';

export function wireJob(job: RunnerJob): JsonObject {
  const { timeoutMs, memoryMb, cpus } = job.limits;
  return {
    kind: job.kind,
    session: job.session,
    ...programOf(job),
    inputs: job.inputs,
    ...(job.sandbox === undefined ? {} : { sandbox: job.sandbox }),
    ...(job.workspace === undefined ? {} : { workspace: wireWorkspace(job.workspace) }),
    limits: {
      timeout_ms: Math.max(1, Math.round(timeoutMs)),
      ...(memoryMb === null ? {} : { memory_mb: memoryMb }),
      ...(cpus === undefined ? {} : { cpus }),
    },
  };
}

/** The program: source text, an image, or the contents of an image. */
function programOf({ kind, code, runtime, image, args, build }: RunnerJob): JsonObject {
  if (kind === 'docker')
    return { image: image ?? '', ...(code === '' ? {} : { command: code }), args: [...(args ?? [])] };
  if (kind !== 'tool') return { code };
  if (image !== undefined) return { image };
  if (build !== undefined) return { build: wireBuild(build) };
  return { code, runtime, ...(args === undefined ? {} : { args: [...args] }) };
}

function wireBuild({ base, files, entrypoint, requirements }: ImageBuild): JsonObject {
  return { base, files: { ...files }, entrypoint, requirements: [...requirements] };
}

export function wireRelicCall({ space, relic, method, path, body, timeoutMs }: RelicCall): JsonObject {
  const { implementation, persistent, idleMs } = relic;
  if (implementation.type !== 'container') throw new Error(`The relic "${relic.name}" does not use a runner`);
  const { image, build, command, port, health, memoryMb, cpus, environment, state } = implementation;
  return {
    space,
    relic: {
      image,
      build: build === null ? null : wireBuild(build),
      command: command === null ? null : [...command],
      ...(environment === undefined ? {} : { environment: { ...environment } }),
      ...(state === undefined ? {} : { state }),
      port,
      health: { path: health.path, interval_ms: health.intervalMs, start_ms: health.startMs },
      persistent,
      idle_ms: idleMs,
      ...(memoryMb === null ? {} : { memory_mb: memoryMb }),
      ...(cpus === null ? {} : { cpus }),
    },
    call: { method, path, body: body === null ? null : JSON.stringify(body) },
    timeout_ms: Math.max(1, Math.round(timeoutMs)),
  };
}

const RELIC_PROBLEMS = ['relic_unavailable', 'relic_broken', 'relic_timeout', 'relic_answer_too_large'] as const;

export function relicAnswerOf(answer: JsonObject | null, name: string): RelicAnswer {
  const { status, type, body, error } = answer ?? {};
  if (typeof status === 'number' && typeof body === 'string') {
    return { ok: true, status, type: typeof type === 'string' ? type : '', body };
  }
  if (!isJsonObject(error)) return broken(`The runner returned no answer of the relic ${name}`);
  const code = RELIC_PROBLEMS.find((known) => known === error['code']);
  const beforeDispatch = error['before_dispatch'] === true;
  const message = typeof error['message'] === 'string' ? error['message'] : `The relic ${name} did not answer`;
  return { ok: false, code: code ?? (beforeDispatch ? 'relic_unavailable' : 'relic_broken'), message, beforeDispatch };
}

export function broken(message: string): RelicAnswer {
  return { ok: false, code: 'relic_broken', message, beforeDispatch: false };
}
