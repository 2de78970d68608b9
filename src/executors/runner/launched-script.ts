/**
 * The source code that starts a script tool with files beside it, another first argument, or variables (M3). Everything
 * in it is from the manifest; the values of a call reach the script as data (P14, R3).
 */
import type { ScriptLaunch, ScriptRuntime } from '../../domain/manifests/program.ts';

/** Folder of the files, in the sandbox's working directory. */
const FOLDER = '.tool';

export function launchedScript(runtime: ScriptRuntime, source: string, launch: ScriptLaunch | undefined): string {
  if (launch === undefined) return source;
  switch (runtime) {
    case 'python3':
      return pythonScript(source, launch);
    case 'node':
      return nodeScript(source, launch);
    case 'shell':
      return shellScript(source, launch);
  }
}

/** Python's JSON has no literals that Python lacks, because it is text in a string literal. */
function pythonScript(source: string, { path, files, argument, environment }: ScriptLaunch): string {
  const launch = JSON.stringify({ source, path, files, file: argument === 'file', environment });
  return `def _start(launch):
    import linecache, os, sys
    os.environ.update(launch["environment"])
    if launch["file"]:
        sys.argv[1:] = [os.environ["CORTEX_INPUTS"]]
    path, name, source = __file__, launch["path"], launch["source"]
    if launch["files"]:
        root = os.path.join(os.getcwd(), "${FOLDER}")
        path = os.path.join(root, *name.split("/"))
        for file, text in {**launch["files"], name: source}.items():
            target = os.path.join(root, *file.split("/"))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "w", encoding="utf-8", newline="") as out:
                out.write(text)
        sys.argv[0] = path
        sys.path.insert(0, os.path.dirname(path))
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    return path, compile(source, name, "exec", dont_inherit=True)

__file__, _code = _start(__import__("json").loads(${JSON.stringify(launch)}))
del _start
exec(_code)
`;
}

function nodeScript(source: string, { path, files, argument, environment }: ScriptLaunch): string {
  const launch = JSON.stringify({ path, files: { ...files, [path]: source }, environment });
  return `const launch = ${launch};
const fs = require('node:fs');
const nodePath = require('node:path');
const root = nodePath.resolve('${FOLDER}');
for (const [file, text] of Object.entries(launch.files)) {
  const target = nodePath.join(root, file);
  fs.mkdirSync(nodePath.dirname(target), { recursive: true });
  fs.writeFileSync(target, text);
}
const variables = process.env;
Object.assign(variables, launch.environment);
${argument === 'file' ? 'process.argv.splice(2, Infinity, variables.CORTEX_INPUTS);' : ''}
process.argv[1] = nodePath.join(root, launch.path);
import(require('node:url').pathToFileURL(process.argv[1]).href);
`;
}

/** Before the first line of the script, so that its line numbers in messages are right. */
function shellScript(source: string, { path, files, argument, environment, bash }: ScriptLaunch): string {
  const shell = bash ? 'bash' : 'sh';
  const steps = [
    // the sandbox's own shell may be another one
    ...(bash ? ['[ -n "${BASH_VERSION:-}" ] || ! command -v bash >/dev/null 2>&1 || exec bash "$0" "$@"'] : []),
    ...(argument === 'file' ? ['set -- "$CORTEX_INPUTS"'] : []),
    ...Object.entries(environment).map(([name, value]) => `export ${name}=${quoted(value)}`),
  ];
  if (Object.keys(files).length === 0) return steps.length === 0 ? source : `${steps.join('; ')}; ${source}`;
  const all = Object.entries({ ...files, [path]: source });
  for (const [file, text] of all) {
    const target = `${FOLDER}/${file}`;
    steps.push(`mkdir -p ${quoted(folderOf(target))}`, `printf %s ${quoted(text)} > ${quoted(target)}`);
  }
  steps.push(`${shell} ${quoted(`${FOLDER}/${path}`)} "$@"`);
  return `${steps.join('\n')}\n`;
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

/** Quotes a word for any shell. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
