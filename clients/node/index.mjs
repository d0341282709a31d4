import firn from './index.js';

export const { open, openAsync, FirnError } = firn;
export default firn;
