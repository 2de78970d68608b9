/** The least Node for projects: `major.minor`. The package, the template and the pages name the same (a test compares them). */
export const LEAST_NODE = '22.15';

/** @param version such as `24.1.0` */
export function isNodeSupported(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [leastMajor = 0, leastMinor = 0] = LEAST_NODE.split('.').map(Number);
  return major > leastMajor || (major === leastMajor && minor >= leastMinor);
}
