/** An index of Python packages for builds of images. */
import { spawnSync } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import type Docker from 'dockerode';

/** The files of a tool whose Dockerfile installs the package of the index. */
export const WITH_PACKAGE = {
  Dockerfile:
    'FROM python\nWORKDIR /srv\nCOPY needs.txt .\nRUN pip install --no-cache-dir -r needs.txt\nCOPY app/ ./app/\nRUN mkdir -p /data\nENTRYPOINT ["python3", "/srv/app/main.py"]\n',
  'needs.txt': 'tiny==1.0\n',
  'app/main.py': 'import tiny; print(tiny.word)',
};

/** An index with one package, reachable from containers with a network. */
export async function packageIndex(docker: Docker): Promise<{ readonly url: string; readonly server: Server }> {
  const network = (await docker.getNetwork('bridge').inspect()) as {
    readonly IPAM: { readonly Config: readonly { readonly Gateway?: string }[] };
  };
  const gateway = network.IPAM.Config[0]?.Gateway ?? '172.17.0.1';
  const wheel = spawnSync('/usr/bin/python3', ['-c', WHEEL], { maxBuffer: 1_000_000 }).stdout;
  const server = createServer((request, response) => {
    if (request.url === '/tiny/')
      response
        .setHeader('content-type', 'text/html')
        .end('<a href="tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a>');
    else if (request.url?.endsWith('.whl') === true) response.end(wheel);
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, gateway, resolve);
  });
  return { server, url: `http://${gateway}:${(server.address() as AddressInfo).port}/` };
}

const WHEEL = `
import io, sys, zipfile
buffer = io.BytesIO()
with zipfile.ZipFile(buffer, "w") as wheel:
    wheel.writestr("tiny.py", "word = 'hello'\\n")
    wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n")
    wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\\ntiny-1.0.dist-info/METADATA,,\\ntiny-1.0.dist-info/WHEEL,,\\ntiny-1.0.dist-info/RECORD,,\\n")
sys.stdout.buffer.write(buffer.getvalue())
`;
