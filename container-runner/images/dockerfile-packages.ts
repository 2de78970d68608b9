/**
 * `RUN pip install` of a Dockerfile. The builder has no network, so the runner installs these packages beforehand, as those
 * of a tool: wheels only, as an unprivileged user. The instruction becomes an ADD of the result. Any other `pip` command
 * stays as it is.
 */
import { limits } from '../limits.ts';
import { requirement } from './image-build.ts';

/** Packages that are installed before the build. */
export interface PackageStep {
  /** The name of the archive in the build's context; it holds the directory `packages`. */
  readonly archive: string;
  readonly requirements: readonly string[];
  /** The image whose Python uses them. */
  readonly image: string;
}

const PLACE = '/opt/cortex-packages';
const INSTALL = /^RUN[ \t]+(?:python3?[ \t]+-m[ \t]+)?pip3?[ \t]+install[ \t]+(.+)$/i;
const FROM = /^FROM[ \t]+(\S+)(?:[ \t]+AS[ \t]+(\S+))?/i;
/** Options that do not change what is installed. */
const NEUTRAL: ReadonlySet<string> = new Set(
  '--no-cache-dir --upgrade -U --no-input --disable-pip-version-check --user --quiet -q --prefer-binary'.split(' '),
);

/** @param dockerfile one instruction per line, with references of images */
export function withPackages(
  dockerfile: string,
  files: Readonly<Record<string, string>>,
): { readonly dockerfile: string; readonly steps: readonly PackageStep[] } {
  const steps: PackageStep[] = [];
  const stages = new Map<string, string>();
  let image = '';
  /** Whether the current stage already has packages. */
  let hasPackages = false;
  const lines = dockerfile.split('\n').flatMap((line) => {
    const [from, ground = '', stage] = FROM.exec(line) ?? [];
    if (from !== undefined) {
      hasPackages = stages.has(ground.toLowerCase());
      image = stages.get(ground.toLowerCase()) ?? ground;
      if (stage !== undefined) stages.set(stage.toLowerCase(), image);
    }
    const requirements = requirementsOf(INSTALL.exec(line)?.[1], files);
    if (requirements === null || image === 'scratch' || steps.length === limits.buildPackageSteps) return [line];
    const archive = `.cortex-packages-${steps.length}.tar`;
    const place = `${PLACE}/${steps.length}`;
    steps.push({ archive, requirements, image });
    const before = hasPackages ? ':$PYTHONPATH' : '';
    hasPackages = true;
    return [`ADD ${archive} ${place}/`, `ENV PYTHONPATH=${place}/packages${before} PATH=${place}/packages/bin:$PATH`];
  });
  return { dockerfile: lines.join('\n'), steps };
}

/** Null if the command does more than install packages by name. */
function requirementsOf(
  written: string | undefined,
  files: Readonly<Record<string, string>>,
): readonly string[] | null {
  if (written === undefined || /[;&|<>$`\\(){}*?#]/.test(written.replaceAll(/"[^"$`\\]*"|'[^']*'/g, ''))) return null;
  const words = (written.match(/"[^"]*"|'[^']*'|[^\s"']+/g) ?? []).map((word) => word.replace(/^(["'])(.*)\1$/, '$2'));
  const found: string[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? '';
    if (NEUTRAL.has(word)) continue;
    if (word === '-r' || word === '--requirement') {
      at += 1;
      const lines = linesOf(words[at] ?? '', files);
      if (lines === null) return null;
      found.push(...lines);
    } else found.push(word);
  }
  const isAllowed = found.length > 0 && found.length <= limits.buildRequirements;
  return isAllowed && found.every((one) => requirement.safeParse(one).success) ? found : null;
}

function linesOf(path: string, files: Readonly<Record<string, string>>): string[] | null {
  const name = path.replace(/^(?:\.?\/)+/, '');
  const base = name.slice(name.lastIndexOf('/') + 1);
  const same = Object.keys(files).filter((file) => file === base || file.endsWith(`/${base}`));
  const text = files[name] ?? (same.length === 1 ? files[same[0] ?? ''] : undefined);
  if (text === undefined) return null;
  return text
    .split(/\r?\n/)
    .map((line) => line.replace(/(?:^|\s)#[^]*$/, '').trim())
    .filter((line) => line !== '');
}
