<?php
// Takes ids from a page, as told, and prints them, a line an id. An empty line ends the ids of a process.
//
//     take.php next|batch|mixed|fork PATH N
//     take.php until PATH
//     take.php runs PATH BATCH SINGLES PAUSE
//
// runs prints runs of consecutive ids, a line FIRST COUNT, until its standard input ends.

const PROCESSES = 4;

function show(array $ids): void
{
    fwrite(STDOUT, implode("\n", $ids) . "\n\n");
}

/** N ids, some at a time and some alone. */
function some(Firn\Page $ids, int $n): array
{
    $got = [];
    while (count($got) < $n) {
        $got[] = $ids->next();
        array_push($got, ...$ids->batch(min(9, $n - count($got))));
    }
    return $got;
}

function forks(Firn\Page $ids, int $n): void
{
    show([$ids->next()]); // the page has been used before the fork
    $pipes = [];
    for ($i = 0; $i < PROCESSES; $i++) {
        [$ours, $theirs] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        if (pcntl_fork() === 0) {
            fwrite($theirs, implode("\n", some($ids, $n)));
            exit(0);
        }
        fclose($theirs);
        $pipes[] = $ours;
    }
    show(some($ids, $n));
    foreach ($pipes as $pipe) {
        show(explode("\n", stream_get_contents($pipe)));
        pcntl_wait($status);
    }
}

/** Objects that come and go use one mapping, and their ids increase. */
function objects(string $path, int $n): void
{
    $got = [];
    for ($i = 0; $i < $n; $i++) {
        $ids = new Firn\Page($i % 2 ? $path : dirname($path) . '/./' . basename($path), $i % 3 ? 1 : null);
        $got[] = $ids->next();
    }
    if (substr_count(file_get_contents('/proc/self/maps'), $path) !== 1) {
        throw new Exception('mapped more than once');
    }
    show($got);
}

function until(Firn\Page $ids): void
{
    $got = [];
    stream_set_blocking(STDIN, false);
    while (!feof(STDIN)) {
        fread(STDIN, 1);
        array_push($got, $ids->next(), ...$ids->batch(9));
        usleep(2000);
    }
    show($got);
}

/** Takes ids in batches and alone. All ids increase. */
function runs(Firn\Page $ids, int $batch, int $singles, int $pause): void
{
    stream_set_blocking(STDIN, false);
    for ($last = 0; !feof(STDIN); usleep($pause * 1000)) {
        fread(STDIN, 1);
        $got = $ids->batch($batch);
        for ($i = 0; $i < $singles; $i++) {
            $got[] = $ids->next();
        }
        $text = '';
        $first = $got[0];
        foreach ($got as $i => $id) {
            if ($id <= $last) {
                throw new Exception("$id after $last");
            }
            if ($i > 0 && $id !== $last + 1) {
                $text .= $first . ' ' . ($last - $first + 1) . "\n";
                $first = $id;
            }
            $last = $id;
        }
        fwrite(STDOUT, $text . $first . ' ' . ($last - $first + 1) . "\n");
    }
}

[, $what, $path] = $argv;
$n = (int) ($argv[3] ?? 0);
$ids = new Firn\Page($path, wait: 60);
match ($what) {
    'next' => show(array_map(fn() => $ids->next(), range(1, $n))),
    'batch' => show($ids->batch($n)),
    'mixed' => show(some($ids, $n)),
    'fork' => forks($ids, $n),
    'objects' => objects($path, $n),
    'until' => until($ids),
    'runs' => runs($ids, $n, (int) $argv[4], (int) $argv[5]),
};
