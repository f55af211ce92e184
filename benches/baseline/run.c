/* Runs steps of the workload on demand, for benches/steps. Reads lines "t N" (N training steps) and "i N" (N inferences), each
   from fresh parameters, and answers with the nanoseconds they took, and the loss afterwards. With "t N" as arguments it does that
   once, for counting instructions. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "ref_w.c"
static double now(void){ struct timespec t; clock_gettime(CLOCK_MONOTONIC,&t); return t.tv_sec*1e9+t.tv_nsec; }
static void run(char what,int n){
  b_init();
  double start=now();
  if(what=='t') for(int i=0;i<n;i++) b_step();
  else for(int i=0;i<n;i++) b_infer();
  double time=now()-start;
  printf("%.0f %.6f\n",time,b_loss()); fflush(stdout);
}
int main(int count,char**word){
  char what; int n;
  if(count>2){ run(word[1][0],atoi(word[2])); return 0; }
  while(scanf(" %c %d",&what,&n)==2) run(what,n);
  return 0;
}
