/** Finds the modules beside a Python script that it imports, directly or through them. */
import { limits } from '../../domain/limits.ts';
import { folderOf } from '../read/paths.ts';

/** Each character can match in one way only, so that a line takes linear time. */
const FROM = /^[ \t]*from[ \t]+(?=[\w.])(\.*)(\w[\w.]*)?[ \t]+import[ \t]+\(?([\w \t,]*)/;
const IMPORT = /^[ \t]*import[ \t]+([\w. \t,]+)/;

/**
 * @param entry path of the script, relative to its manifest
 * @param findFile text of a file by its path relative to the manifest, or null
 * @returns the texts of the modules by path; at most `limits.scriptFiles`, after at most `limits.scriptLookups`
 */
export function pythonImports(
  entry: string,
  source: string,
  findFile: (path: string) => string | null,
): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const seen = new Set([entry]);
  const queue = [{ path: entry, source }];
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    for (const path of candidates(next.source, folderOf(entry), folderOf(next.path))) {
      if (seen.has(path)) continue;
      if (seen.size > limits.scriptLookups || found.size >= limits.scriptFiles) return found;
      seen.add(path);
      const text = findFile(path);
      if (text === null) continue;
      found.set(path, text);
      queue.push({ path, source: text });
    }
  }
  return found;
}

/** Where the modules of import statements may be. */
function* candidates(source: string, root: string, folder: string): Generator<string, void> {
  for (const line of source.split('\n')) {
    const [, dots = '', from = '', names = ''] = FROM.exec(line) ?? [];
    if (from !== '' || dots !== '') {
      // one dot is the module's own package
      const start = dots === '' ? root : `${folder}${'/..'.repeat(dots.length - 1)}`;
      const base = join(start, from);
      yield* filesOfModule(start, from);
      for (const name of namesIn(names)) yield* [join(base, `${name}.py`), join(base, `${name}/__init__.py`)];
      continue;
    }
    for (const name of namesIn(IMPORT.exec(line)?.[1] ?? '')) yield* filesOfModule(root, name);
  }
}

/** `a.b` is `a/b.py` or `a/b/__init__.py`, and Python also reads `a/__init__.py`. */
function* filesOfModule(folder: string, module: string): Generator<string, void> {
  if (module === '') return;
  if (module.length > limits.modulePathChars) return;
  const path = module.replaceAll('.', '/');
  yield join(folder, `${path}.py`);
  for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) {
    yield join(folder, `${path.slice(0, end)}/__init__.py`);
  }
}

/** `a as b, c.d` names `a` and `c.d`. */
function namesIn(list: string): string[] {
  return list
    .split(',')
    .map((item) => item.trim().split(/[ \t]/, 1)[0] ?? '')
    .filter((name) => name !== '');
}

function join(folder: string, path: string): string {
  return folder === '' || path === '' ? `${folder}${path}` : `${folder}/${path}`;
}
