/** A sandbox whose programs the test controls. */
import fs from 'node:fs';
import { PassThrough, Readable } from 'node:stream';

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
  STANDARD,
} from '../../sandbox/sandbox.ts';
import type { LaunchWorkspace, LeftEntry } from '../../workspace/workspace.ts';

/** A program of the shell without a text. */
export const EMPTY_PROGRAM: Launch = {
  ...STANDARD,
  interpreter: 'shell',
  entry: 'code',
  source: '',
  inputsJson: '{}',
  args: [],
  stdin: '',
  env: {},
};

/** An entry of a workspace: by default, a regular file with the announced size of its bytes. */
export interface FakeEntry extends Partial<Omit<LeftEntry, 'path'>> {
  readonly path: string;
  readonly bytes?: string | Uint8Array | Readable;
}

/** What a program leaves in its workspace. `isComplete` false: the sandbox fails after these entries. */
export interface FakeRemains {
  readonly entries: Iterable<FakeEntry>;
  readonly isComplete?: boolean;
}

export interface FakeProcess {
  readonly launch: Launch | ImageLaunch;
  /** It was reserved for its session. */
  readonly held: boolean;
  readonly signals: string[];
  print(text: string | Uint8Array): void;
  /** On standard error. */
  complain(text: string): void;
  /** Its end; an end by itself leaves the workspace as it was, or as told. */
  end(end?: Partial<ProcessEnd>, remains?: FakeRemains): void;
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
    const end = (how: Partial<ProcessEnd> = {}, remains?: FakeRemains): void => {
      stdout.end();
      stderr.end();
      const finished = { exitCode: 0, signal: null, oom: false, ...how };
      if (launch.workspace === undefined || finished.exitCode === null) settle(finished);
      else void relay(launch.workspace, remains).then(() => settle(finished));
    };
    this.started.push({
      launch,
      held,
      signals,
      print: (text) => stdout.write(text),
      complain: (text) => stderr.write(text),
      end,
    });
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

/** Gives the receiver what a program left, like a sandbox. */
export async function relay(
  { files, receiver }: LaunchWorkspace,
  { entries, isComplete = true }: FakeRemains = { entries: files.map(unchanged) },
): Promise<void> {
  for (const { path, kind = 'file', executable = false, size, bytes = '' } of entries) {
    const content = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    const announced = size ?? (content instanceof Uint8Array ? content.length : 0);
    const stream = content instanceof Uint8Array ? Readable.from([content]) : content;
    const mayGoOn = await receiver.entry(
      { path, kind, executable, size: announced },
      kind === 'file' || bytes !== '' ? stream : null,
    );
    if (!mayGoOn) return;
  }
  if (isComplete) receiver.complete();
}

function unchanged({ path, executable, size, source }: LaunchWorkspace['files'][number]): FakeEntry {
  return { path, executable, size, bytes: fs.createReadStream(source) };
}
