/** A relic host whose services behave as the test defines. */
import type { RelicCall, RelicSpec } from '../../relics/definition.ts';
import type { RelicAnswer, RelicHost, RelicId, RelicService } from '../../relics/relic-service.ts';

export class FakeService {
  readonly id: RelicId;
  readonly spec: RelicSpec;
  readonly calls: RelicCall[] = [];
  readonly ended: Promise<string>;
  stopped = false;
  /** The answer of the service; health checks have a separate answer. */
  answer: (call: RelicCall) => Promise<RelicAnswer> | RelicAnswer = () => ({
    end: 'answered',
    status: 200,
    type: 'application/json',
    body: '{}',
  });
  healthy: RelicAnswer = { end: 'answered', status: 200, type: '', body: 'ok' };
  #end: (words: string) => void = () => undefined;

  constructor(id: RelicId, spec: RelicSpec) {
    this.id = id;
    this.spec = spec;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  die(words: string): void {
    this.stopped = true;
    this.#end(words);
  }

  ask(call: RelicCall): Promise<RelicAnswer> {
    if (this.stopped) return Promise.resolve({ end: 'refused' });
    if (call.path === this.spec.health.path) return Promise.resolve(this.healthy);
    this.calls.push(call);
    return Promise.resolve(this.answer(call));
  }

  stop(): Promise<void> {
    this.die('stopped');
    return Promise.resolve();
  }
}

export class FakeRelicHost implements RelicHost {
  readonly level = 'fake';
  readonly started: FakeService[] = [];
  readonly left: string[] = [];
  readonly forgotten: { readonly scope: string; readonly name: string | null }[] = [];
  /** Called with every service before it is returned; can throw. */
  prepare: (service: FakeService) => void = () => undefined;

  refusal({ port }: RelicSpec): string | null {
    return port === 1 ? 'port 1 is not for relics' : null;
  }

  start(id: RelicId, spec: RelicSpec): Promise<RelicService> {
    const service = new FakeService(id, spec);
    try {
      this.prepare(service);
    } catch (fault) {
      return Promise.reject(fault);
    }
    this.started.push(service);
    return Promise.resolve({
      ask: (call) => service.ask(call),
      ended: service.ended,
      stop: () => service.stop(),
    });
  }

  forget(which: { readonly scope: string; readonly name: string | null }): Promise<void> {
    this.forgotten.push(which);
    return Promise.resolve();
  }

  leave(scope: string): Promise<void> {
    this.left.push(scope);
    return Promise.resolve();
  }

  open(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
