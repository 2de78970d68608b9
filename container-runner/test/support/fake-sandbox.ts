/** A sandbox whose programs the test controls. */
import { PassThrough } from 'node:stream';

import type { ImageBuild } from '../../images/image-build.ts';
import {
  type Availability,
  everywhere,
  type Held,
  type ImageLaunch,
  type Launch,
  type ProcessEnd,
  type Sandbox,
  type SandboxLevel,
  type SandboxProcess,
} from '../../sandbox/sandbox.ts';

export interface FakeProcess {
  readonly launch: Launch | ImageLaunch;
  /** It was reserved for its session. */
  readonly held: boolean;
  readonly signals: string[];
  print(text: string): void;
  end(end?: Partial<ProcessEnd>): void;
}

export class FakeSandbox implements Sandbox {
  readonly level: SandboxLevel;
  readonly started: FakeProcess[] = [];
  readonly #availability: Availability;
  /** The reaction of the programs to TERM. */
  obedient = true;
  holds = 0;
  releases = 0;
  readonly heldImages: string[] = [];
  holdFails = false;

  constructor(level: SandboxLevel = 'wasm', availability: Availability = { ok: true }) {
    this.level = level;
    this.#availability = availability;
  }

  probe(): ReturnType<Sandbox['probe']> {
    return Promise.resolve(everywhere(this.#availability));
  }

  start(launch: Launch): Promise<SandboxProcess> {
    return this.#start(launch, false);
  }

  hold(): Promise<Held> {
    this.holds += 1;
    if (this.holdFails) return Promise.reject(new Error('cannot be held'));
    return Promise.resolve({
      start: (launch) => this.#start(launch, true),
      release: () => {
        this.releases += 1;
      },
    });
  }

  startImage(launch: ImageLaunch): Promise<SandboxProcess> {
    return this.#start(launch, false);
  }

  holdImage(image: string): Promise<Held<ImageLaunch>> {
    this.holds += 1;
    this.heldImages.push(image);
    return Promise.resolve({
      start: (launch) => this.#start(launch, true),
      release: () => {
        this.releases += 1;
      },
    });
  }

  buildImage(build: ImageBuild, progress: (text: string) => void): Promise<string> {
    progress(`building ${build.entrypoint}\n`);
    return Promise.resolve('built');
  }

  #start(launch: Launch | ImageLaunch, held: boolean): Promise<SandboxProcess> {
    const stdout = new PassThrough();
    const stderr = new PassThrough();
    const signals: string[] = [];
    let settle: (end: ProcessEnd) => void = () => undefined;
    const ended = new Promise<ProcessEnd>((resolve) => {
      settle = resolve;
    });
    const end = (how: Partial<ProcessEnd> = {}): void => {
      stdout.end();
      stderr.end();
      settle({ exitCode: 0, signal: null, oom: false, ...how });
    };
    this.started.push({ launch, held, signals, print: (text) => stdout.write(text), end });
    return Promise.resolve({
      stdout,
      stderr,
      ended,
      terminate: () => {
        signals.push('TERM');
        if (this.obedient) end({ exitCode: null, signal: 'SIGTERM' });
      },
      kill: () => {
        signals.push('KILL');
        end({ exitCode: null, signal: 'SIGKILL' });
      },
    });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
