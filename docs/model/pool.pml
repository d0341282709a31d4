/*
 * Two pools of one store, and a worker that both want: how a pool is created, gets the
 * worker and gives it up, as package pool does it. What must hold: never do processes of
 * both pools issue with that worker at one time.
 *
 * A pool's record is read and written by compare-and-set. An operator may end between any
 * two requests, and another one begins. A process reads the pool's record, takes the
 * worker by a write to the worker's record in its pool, and reads the pool's again.
 *
 * Rules, and the mutants without them:
 *   a range is reserved, then the others are read, then it is used    MUT_ONEWRITE
 *   the others are read after it is reserved                          MUT_LISTFIRST
 *   a reservation of a pool that is being created is made void        MUT_NOVOID
 *   the last write is on the version of the reservation               MUT_BLIND
 *   a process reads the range again after it took a worker            MUT_NOCONFIRM
 *   workers are given up when nobody holds them                       MUT_HELD
 *   and nobody can take them meanwhile                                MUT_USABLE
 */

#ifndef TRIES
#define TRIES 3              /* of each operator */
#endif

byte version[2];             /* of a pool's record; 0: there is none */
bool created[2], usable[2], reserved[2];   /* what it says: of the pool, and of the worker */
bool taken[2];               /* what the worker's record of each pool says */
bool issues[2];              /* a process of the pool does, with the worker */
bool repeat;

#define OTHER (1 - i)
#ifdef MUT_BLIND
#define SAME true
#else
#define SAME (version[i] == v)
#endif

proctype Operator(byte i) {
	byte tries, v, ov;
	bool oc, ou, or, was, gives;
begin:
	do
	:: tries == TRIES -> goto over
	:: tries < TRIES ->
		tries++;
		atomic {
			v = version[i]; was = created[i] && (usable[i] || reserved[i]); gives = false;
			if
			:: was -> gives = true   /* also one that was broken off while it gave it up */
			:: true                  /* or it wants it, again */
			fi
		}
#ifdef MUT_LISTFIRST
		atomic { ov = version[OTHER]; oc = created[OTHER]; ou = usable[OTHER]; or = reserved[OTHER] }
#endif
#ifndef MUT_ONEWRITE
		atomic {
			if
			:: version[i] == v ->
				version[i]++; v = version[i]; reserved[i] = true;
#ifndef MUT_USABLE
				usable[i] = false;
#endif
				printf("%d reserves the worker\n", i)
			:: else -> goto begin
			fi
		}
#endif
		if
		:: goto begin                /* broken off */
		:: skip
		fi;
#ifndef MUT_LISTFIRST
		atomic { ov = version[OTHER]; oc = created[OTHER]; ou = usable[OTHER]; or = reserved[OTHER] }
#endif
		if
		:: ou || or && oc ->         /* the other pool has it, or is getting or giving it up */
			if
			:: was                   /* it was this one's before: it stays reserved */
			:: !was -> atomic {
				if
				:: version[i] == v -> version[i]++; reserved[i] = false
				:: else
				fi
			}
			fi;
			goto begin
		:: or && !oc && !ou ->
#ifndef MUT_NOVOID
			atomic {
				if
				:: version[OTHER] == ov -> version[OTHER]++; reserved[OTHER] = false; printf("%d makes the other's void\n", i)
				:: else -> goto begin
				fi
			}
#else
			skip
#endif
		:: else
		fi;
		if
		:: gives ->
#ifndef MUT_HELD
			if
			:: taken[i] -> goto begin    /* in use: it stays reserved */
			:: !taken[i]
			fi;
#endif
			atomic {
				if
				:: SAME -> version[i]++; usable[i] = false; reserved[i] = false; printf("%d gives the worker up\n", i)
				:: else
				fi
			}
		:: !gives -> atomic {
				if
				:: SAME -> version[i]++; created[i] = true; usable[i] = true; reserved[i] = false; printf("%d has the worker\n", i)
				:: else
				fi
			}
		fi
	od;
over:
	skip
}

proctype Process(byte i) {
	do
	:: atomic { usable[i] && !taken[i] }
		atomic { taken[i] = true; printf("a process of %d takes it\n", i) }
#ifndef MUT_NOCONFIRM
		if
		:: atomic { usable[i] -> skip }
		:: atomic { !usable[i] -> taken[i] = false; goto end }
		fi;
#endif
		atomic {
			issues[i] = true;
			repeat = issues[OTHER];
			assert(!repeat)
		}
		atomic { issues[i] = false; taken[i] = false; printf("a process of %d lets it go\n", i) }
	:: true -> break
	od;
end:
	skip
}

init {
	atomic {
		run Operator(0); run Operator(1);
		run Process(0); run Process(1)
	}
}
