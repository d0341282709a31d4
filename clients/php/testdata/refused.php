<?php
// Prints what a call throws: the class, the code and the message.
//
//     refused.php PATH WAIT [BATCH]

try {
    $ids = new Firn\Page($argv[1], (float) $argv[2]);
    echo isset($argv[3]) ? count($ids->batch((int) $argv[3])) : $ids->next(), "\n";
} catch (Firn\Exception $e) {
    echo get_class($e), ' ', $e->getCode(), ' ', $e->getMessage(), "\n";
}
