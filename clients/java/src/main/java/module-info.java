/** Ids from a shared page: see {@link id.firn.Firn}. */
module id.firn {
	exports id.firn;
}
