/** Passes a job's values to its program as data: in a file, on stdin, in argv and in variables, never as code (P14, R3). */
import type { ImageBuild } from '../images/image-build.ts';
import type { JobRequest } from './job.ts';
import { limits } from '../limits.ts';
import { RunnerError } from '../problem.ts';
import type { ImageLaunch, Launch } from '../sandbox/sandbox.ts';
import type { LaunchWorkspace } from '../workspace/workspace.ts';

/** Environment variables that change the behaviour of loaders, shells, interpreters and common tools. */
const RESERVED_NAMES = new Set(
  `PATH HOME IFS ENV BASH BASHOPTS SHELLOPTS SHELL PS0 PS1 PS2 PS3 PS4 PROMPT_COMMAND CDPATH GLOBIGNORE FIGNORE
   OPTIND OPTERR OPTARG EXECIGNORE FCEDIT EDITOR VISUAL PAGER MANPAGER LESSOPEN LESSCLOSE BROWSER POSIXLY_CORRECT
   PWD OLDPWD UID EUID PPID RANDOM SECONDS LINENO HOSTNAME HOSTFILE USER LOGNAME MAIL MAILPATH TMPDIR TMP TEMP
   TERM TERMINFO TERMCAP LANG LANGUAGE LOCPATH NLSPATH TZ TZDIR GCONV_PATH GETCONF_DIR HOSTALIASES LOCALDOMAIN
   RES_OPTIONS RESOLV_HOST_CONF MALLOC_CHECK_ MALLOC_TRACE GLIBC_TUNABLES AWKPATH AWKLIBPATH
   AWK_HASH TAR_OPTIONS GZIP GREP_OPTIONS UNZIP ZIPOPT CURL_HOME WGETRC INPUTRC SSL_CERT_FILE SSL_CERT_DIR
   OPENSSL_CONF KRB5_CONFIG JAVA_TOOL_OPTIONS _JAVA_OPTIONS CLASSPATH JSON_PATH TRACEPARENT
   TRACESTATE`.split(/\s+/),
);
const RESERVED_PATTERN =
  /^(CORTEX_|LD_|DYLD_|BASH_|LC_|PYTHON|PYENV|NODE_|NPM_|PERL|RUBY|GEM_|LUA_|PHP|GIT_|SSH_|DOCKER_|XDG_|MALLOC_|OTEL_|GO[A-Z]+$|V8_|UV_)|_(proxy|PROXY)$|^__/;
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Where programs see the files of their session (C7). */
const WORKSPACE_FOLDER = '/workspace' as const;

const encoder = new TextEncoder();
function bytesOf(text: string): number {
  return encoder.encode(text).byteLength;
}

/** A program: source code for an interpreter, a program in an image, or one whose image must be built first. */
export type Program =
  | { readonly type: 'source'; readonly launch: Launch }
  | { readonly type: 'image'; readonly launch: ImageLaunch }
  | { readonly type: 'build'; readonly build: ImageBuild; readonly launch: Omit<ImageLaunch, 'image'> };

/**
 * The program to run, with its data.
 * - python: `inputs` is predefined; standard input is empty.
 * - shell, docker: each input is a variable: strings verbatim, others as compact JSON.
 * - tool: the inputs as JSON in the first argument (or the job's own arguments), on standard input and in the file.
 * - all with a workspace: its folder in a variable. Code and docker jobs start there, tools in their work directory.
 *
 * @throws RunnerError `invalid_request` for values that cannot be passed to a process
 */
export function programOf(job: JobRequest): Program {
  const inputsJson = JSON.stringify(job.inputs);
  const common = {
    inputsJson,
    memoryMb: job.limits.memory_mb,
    cpus: job.limits.cpus,
    processes: job.limits.processes,
    diskMb: job.limits.disk_mb,
    timeoutMs: job.limits.timeout_ms,
  };
  const place: Readonly<Record<string, string>> =
    job.workspace === undefined ? {} : { CORTEX_WORKSPACE: WORKSPACE_FOLDER };
  const plain = { args: [], stdin: '', env: place };
  switch (job.kind) {
    case 'python':
      refuseNul('code', job.code);
      return source({ ...common, ...plain, interpreter: 'python3', entry: 'code', source: job.code });
    case 'shell': {
      refuseNul('code', job.code);
      const env = { ...variablesOf(job.inputs), ...place };
      return source({ ...common, ...plain, env, interpreter: 'shell', entry: 'code', source: job.code });
    }
    case 'docker': {
      refuseNul('command', job.command ?? '');
      for (const arg of job.args) refuseNul('args', arg);
      const words = [job.command ?? '', ...job.args];
      const size = words.reduce((sum, word) => sum + bytesOf(word) + 1, 0);
      if (size > limits.argumentBytes) {
        throw new RunnerError(
          'invalid_request',
          `command and args: ${size} bytes in total (maximum ${limits.argumentBytes})`,
        );
      }
      const launch = {
        ...common,
        command: job.command ?? null,
        args: job.args,
        stdin: '',
        env: { ...variablesOf(job.inputs), ...place },
        ...(job.workspace === undefined ? {} : { directory: WORKSPACE_FOLDER }),
      };
      return { type: 'image', launch: { ...launch, image: job.image } };
    }
    case 'tool': {
      const words = job.args ?? [inputsJson];
      for (const word of words) refuseNul('args', word);
      const args = words.reduce((sum, word) => sum + bytesOf(word), 0) <= limits.argumentBytes ? words : [];
      const given = { ...common, args, stdin: inputsJson, env: place };
      const { image, build, code = '', runtime = 'python3' } = job;
      if (image !== undefined) return { type: 'image', launch: { ...given, command: null, image } };
      if (build !== undefined) return { type: 'build', build, launch: { ...given, command: null } };
      refuseNul('code', code);
      return source({ ...given, interpreter: runtime, entry: 'tool', source: code });
    }
  }
}

/** The program with the files of its workspace. */
export function withWorkspace(program: Program, workspace: LaunchWorkspace): Program {
  return withMore(program, { workspace });
}

/** The program with its trace in a variable, as OpenTelemetry passes a context through an environment (O1). */
export function withTrace(program: Program, traceparent: string): Program {
  return withMore(program, { env: { ...program.launch.env, TRACEPARENT: traceparent } });
}

function withMore(program: Program, more: Partial<Pick<Launch, 'workspace' | 'env'>>): Program {
  switch (program.type) {
    case 'source':
      return { ...program, launch: { ...program.launch, ...more } };
    case 'image':
      return { ...program, launch: { ...program.launch, ...more } };
    case 'build':
      return { ...program, launch: { ...program.launch, ...more } };
  }
}

function source(launch: Launch): Program {
  return { type: 'source', launch };
}

function refuseNul(field: string, text: string): void {
  if (text.includes('\0')) throw new RunnerError('invalid_request', `${field}: must not contain a NUL character`);
}

/** Inputs as variables. Reserved, invalid and large ones are only in the file. */
function variablesOf(inputs: Readonly<Record<string, unknown>>): Record<string, string> {
  const variables: Record<string, string> = {};
  let room: number = limits.argumentBytes;
  for (const [name, value] of Object.entries(inputs)) {
    if (!isVariable(name)) continue;
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    if (text.includes('\0')) {
      throw new RunnerError('invalid_request', `inputs.${name}: a variable must not contain a NUL character`);
    }
    const size = bytesOf(name) + bytesOf(text) + 2;
    if (size > room) continue;
    room -= size;
    variables[name] = text;
  }
  return variables;
}

/** Whether an input with this name may become a variable. */
export function isVariable(name: string): boolean {
  return VARIABLE_NAME.test(name) && !RESERVED_NAMES.has(name) && !RESERVED_PATTERN.test(name);
}
