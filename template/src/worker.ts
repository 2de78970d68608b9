/** The Worker. It serves the manifests and tools of this project, which `cortex build` collects. */
import { createWorker } from 'cortex-edge';
import project from './project.generated.ts';

export default createWorker(project);
export {
  CatalogObject,
  CodeToolHost,
  CodeToolStatusObject,
  DirectoryObject,
  EndpointStatusObject,
  ExecutionIndexObject,
  IdentityObject,
  OutboundHost,
  RateLimitObject,
  RelicObject,
  ScheduleObject,
  SessionObject,
  SharedFeedObject,
} from 'cortex-edge';
