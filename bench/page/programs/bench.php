<?php
// The client in PHP: see the documentation of package main.

function one(Firn\Page $ids, int $n): void
{
    for ($i = 0; $i < $n; $i++) {
        $ids->next();
    }
}

function many(Firn\Page $ids, int $n, int $batch): void
{
    for ($i = 0; $i < $n; $i += $batch) {
        $ids->batch($batch);
    }
}

$ids = new Firn\Page($argv[1]);
while (($line = fgets(STDIN)) !== false) {
    [$n, $batch] = array_map('intval', explode(' ', $line));
    $batch === 1 ? one($ids, $n) : many($ids, $n, $batch);
    echo "\n";
}
