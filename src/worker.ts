/** This repository's own Worker: it serves the project in `manifests/`, as any project serves its own. */
import { createWorker } from './index.ts';
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
  SharedFeedObject,
  SessionObject,
} from './index.ts';
