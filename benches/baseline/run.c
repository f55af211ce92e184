/* Runs steps of the workload on demand, for benches/steps (peer.rs). Reads lines "t N" (N training steps) and "i N" (N
   inferences), each from the first batch and from fresh parameters, and answers with the nanoseconds of the processor they took, and the
   loss of the step that would come next. The parameters are those of a file, where one is named, with weights as [out, in]. With "t N" as
   arguments it does that once, for counting instructions. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "ref_w.c"
static float start[NP]; static int is_loaded;
static double now(void){ struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t); return t.tv_sec*1e9+t.tv_nsec; }
/* Linear layers keep their weights as [in, out], convolutions as [out, taps]. */
static void load(const char*name){
  static float p[NP]; FILE*f=fopen(name,"rb");
  if(!f||fread(p,4,NP,f)!=NP){ fprintf(stderr,"%s does not hold %d parameters\n",name,NP); exit(1); }
  fclose(f); memcpy(start,p,sizeof p); is_loaded=1;
  for(unsigned l=W==3?2:0;l<sizeof FI/sizeof*FI;l++){ int at=FI[l][0],in=FI[l][2],out=FI[l][1]/in;
    for(int o=0;o<out;o++) for(int i=0;i<in;i++) start[at+i*out+o]=p[at+o*in+i]; }
}
static void run(char what,int n){
  b_init(); bi=0; if(is_loaded) memcpy(P,start,sizeof P);
  double begin=now();
  if(what=='t') for(int i=0;i<n;i++) b_step();
  else for(int i=0;i<n;i++) b_infer();
  double time=now()-begin;
  int o=(bi%NB)*BATCH;
  printf("%.0f %.9g\n",time,fwd(X+o*DIM,L+o)); fflush(stdout);
}
int main(int count,char**word){
  char what; int n;
  if(count>2){ run(word[1][0],atoi(word[2])); return 0; }
  if(count>1) load(word[1]);
  printf("C, gcc %s\n",__VERSION__); fflush(stdout);
  while(scanf(" %c %d",&what,&n)==2) run(what,n);
  return 0;
}
